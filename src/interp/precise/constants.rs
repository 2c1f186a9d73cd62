//! Constants, to 256 bits and more.

use std::sync::LazyLock;

use super::big::Big;

/// π / 2.
pub(super) const HALF_PI: Big =
    Big::constant(1, [0x020b_bea6_3b13_9b22, 0x2902_4e08_8a67_cc74, 0xc4c6_628b_80dc_1cd1, 0xc90f_daa2_2168_c234]);
/// ln 2.
pub(super) const LN_2: Big =
    Big::constant(0, [0x8a0d_175b_8baa_fa2c, 0x40f3_4326_7298_b62d, 0xc9e3_b398_03f2_f6af, 0xb172_17f7_d1cf_79ab]);
/// 1 / ln 2.
pub(super) const LOG2_E: Big =
    Big::constant(1, [0x8b25_166c_d1a1_3248, 0xeb57_7aa8_dd69_5a58, 0xbe87_fed0_691d_3e88, 0xb8aa_3b29_5c17_f0bb]);
/// 2 / sqrt(π).
pub(super) const TWO_OVER_SQRT_PI: Big =
    Big::constant(1, [0x39a1_5830_cce6_20b1, 0x1409_a0eb_ac3e_7517, 0x71d4_8a7f_6bfe_c344, 0x906e_ba82_14db_688d]);

/// The first 2560 bits of 2 / π after the point, the most significant limb first.
pub(super) const TWO_OVER_PI: [u64; 40] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
    0xa9e3_9161_5ee6_1b08,
    0x6599_855f_14a0_6840,
    0x8dff_d880_4d73_2731,
    0x0606_1556_ca73_a8c9,
    0x60e2_7bc0_8c6b_47c4,
    0x19c3_67cd_dce8_092a,
    0x8359_c476_8b96_1ca6,
    0xddaf_44d1_5719_053e,
    0xa5ff_0705_3f7e_33e8,
    0x32c2_de4f_9832_7dbb,
    0xc33d_26ef_6b1e_5ef8,
    0x9f3a_1f35_caf2_7f1d,
    0x87f1_2190_7c7c_246a,
    0xfa6e_d577_2d30_433b,
    0x15c6_14b5_9d19_c3c2,
    0xc4ad_414d_2c5d_000c,
    0x467d_862d_71e3_9ac6,
    0x9b00_6233_7cd2_b497,
    0xa7b4_d555_37f6_3ed7,
    0x1810_a3fc_764d_2a9d,
];

/// 1/n! for the Taylor series.
pub(super) static INVERSE_FACTORIALS: LazyLock<[Big; 64]> = LazyLock::new(|| {
    let mut inverse = [Big::ONE; 64];
    for n in 1..64 {
        inverse[n] = inverse[n - 1] / Big::from_i64(n as i64);
    }
    inverse
});

/// 1/(2n+1) for the series of the inverse hyperbolic and circular tangent.
pub(super) static INVERSE_ODD: LazyLock<[Big; 32]> =
    LazyLock::new(|| std::array::from_fn(|n| Big::ONE / Big::from_i64(2 * n as i64 + 1)));

impl Big {
    pub const PI: Big = HALF_PI.doubled();

    /// Times 2, of an ordinary constant.
    const fn doubled(self) -> Big {
        Big::constant(self.exponent + 1, self.limbs)
    }
}
