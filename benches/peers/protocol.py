"""What both peers share: the protocol that ./x bench speaks with them, one JSON object per line.

The bench asks on standard input and waits for one answer on standard output: {"ok": ..} or {"error": text}. Between two
questions a peer is blocked in a read and takes no time from whoever is being timed.

    {"do": "hello"}                                              versions, by name
    {"do": "load", "job": .., "inputs": {name: file.npy}}        forgets the job before
    {"do": "prepare", "as": contestant}                          makes its call and calls once, which may compile
    {"do": "time", "as": contestant, "repeats": n}               seconds that n calls take together
    {"do": "results", "as": contestant, "folder": ..}            one more call; the files that have value and gradient
    {"do": "compile"}                                            seconds from a new function to code that can be called
"""

import gc
import json
import pathlib
import sys
import time

import numpy


class Peer:
    """One framework. `contestants` maps a name to a function (job, inputs as NumPy arrays) -> call, and a call returns value
    and gradient when both are computed; `to_numpy` makes NumPy arrays of them; `compile` answers the question of that name."""

    def __init__(self, versions, contestants, to_numpy, compile=None):
        self.versions = versions
        self.contestants = contestants
        self.to_numpy = to_numpy
        self.compile = compile
        self.job, self.inputs, self.calls = None, {}, {}

    def answer(self, question):
        match question["do"]:
            case "hello":
                return self.versions
            case "load":
                self.job, self.inputs, self.calls = question["job"], {}, {}
                gc.collect()
                self.inputs = {name: numpy.load(file) for name, file in question["inputs"].items()}
                return {}
            case "prepare":
                call = self.contestants[question["as"]](self.job, self.inputs)
                call()
                self.calls[question["as"]] = call
                return {}
            case "time":
                call, repeats = self.calls[question["as"]], range(question["repeats"])
                start = time.perf_counter()
                for _ in repeats:
                    call()
                return {"seconds": time.perf_counter() - start}
            case "results":
                files = []
                results = self.to_numpy(self.calls[question["as"]]())
                for name, array in zip(("value", "gradient"), results, strict=True):
                    files.append(str(pathlib.Path(question["folder"]) / f"{name}.npy"))
                    numpy.save(files[-1], array)
                return {"files": files}
            case "compile" if self.compile:
                return {"seconds": self.compile(self.job, self.inputs)}
        raise ValueError(f"unknown question {question['do']}")

    def serve(self):
        # What frameworks print must not be taken for answers.
        answers = sys.stdout
        sys.stdout = sys.stderr
        for line in sys.stdin:
            try:
                answer = {"ok": self.answer(json.loads(line))}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)
