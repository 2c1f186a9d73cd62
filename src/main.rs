//! The command line of kina-ad; see [`kina_ad::cli`].

fn main() -> std::process::ExitCode {
    kina_ad::cli::main()
}
