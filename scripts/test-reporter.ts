import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

/** How many of the slowest files the summary names. */
const SLOWEST = 10;

/** The outcome of one file. A test is known by its name and how many before it have that name; the file itself by its path. */
type FileOutcome = {
  seconds: number;
  /** How many tests have the name. */
  named: Map<string, number>;
  passed: Set<string>;
  skipped: string[];
  /** Each failure's name with the first line of its reason. */
  failures: Map<string, string>;
};

/**
 * What runs of vitest came to: says each failure when it happens, and sums up what the last lines of `npm test` need.
 * A file that does not load and an error outside of any test count as one failure each. Where a file is run twice, a test
 * that fails twice has failed, and one that fails once is flaky.
 */
export class TestTally implements Reporter {
  /** What failed in one of two attempts. */
  readonly flaky: string[] = [];
  #files = new Map<string, FileOutcome>();
  readonly #outsideTests: string[] = [];

  get passed(): number {
    return this.#sum(({ passed }) => passed.size);
  }

  get failed(): number {
    return this.#sum(({ failures }) => failures.size) + this.#outsideTests.length;
  }

  get skipped(): string[] {
    return [...this.#files.values()].flatMap(({ skipped }) => skipped);
  }

  get failures(): string[] {
    const inFiles = [...this.#files.values()].flatMap(({ failures }) => Array.from(failures.values()));
    return inFiles.concat(this.#outsideTests);
  }

  /** The files that took the longest, the longest first. */
  slowest(): { name: string; seconds: number }[] {
    const files = [...this.#files].map(([name, { seconds }]) => ({ name, seconds }));
    return files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  }

  /** Counts a failure that is no test's. */
  failOutside(why: string): void {
    this.#outsideTests.push(why);
  }

  /** Counts what `run` comes to as the second attempt of the files that it runs. */
  async secondAttempt(run: () => Promise<unknown>): Promise<void> {
    const first = this.#files;
    this.#files = new Map();
    try {
      await run();
    } finally {
      const second = this.#files;
      this.#files = first;
      for (const [file, outcome] of second) this.#files.set(file, this.#together(file, this.#of(file), outcome));
    }
  }

  #together(file: string, first: FileOutcome, second: FileOutcome): FileOutcome {
    const passed = new Set([...first.passed, ...second.passed]);
    const failures = new Map([...first.failures, ...second.failures]);
    for (const [key, failure] of failures) {
      const isTwice = first.failures.has(key) && second.failures.has(key);
      // Without a pass in the other attempt, which may not have reached it, a test has failed.
      if (isTwice || !(passed.has(key) || key === file)) continue;
      failures.delete(key);
      this.flaky.push(failure);
    }
    return { ...second, seconds: first.seconds + second.seconds, passed, failures };
  }

  onTestCaseResult(test: TestCase): void {
    const file = test.module.relativeModuleId;
    const name = `${file} > ${test.fullName}`;
    const { named } = this.#of(file);
    named.set(name, (named.get(name) ?? 0) + 1);
    const key = `${name} ${named.get(name)}`;
    const { state, errors } = test.result();
    if (state === "passed") this.#of(file).passed.add(key);
    if (state === "skipped") this.#of(file).skipped.push(name);
    if (state === "failed") this.#of(file).failures.set(key, said(name, errors));
  }

  onTestModuleEnd(module: TestModule): void {
    const file = module.relativeModuleId;
    const outcome = this.#of(file);
    outcome.seconds = module.diagnostic().duration / 1_000;
    console.log(`${module.ok() ? "ok    " : "FAILED"} ${outcome.seconds.toFixed(1).padStart(6)} s  ${file}`);
    const errors = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
    if (errors.length > 0) outcome.failures.set(file, said(file, errors));
  }

  onTestRunEnd(_modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    if (unhandled.length > 0) this.failOutside(said("an error outside of any test", unhandled));
  }

  #of(file: string): FileOutcome {
    const known = this.#files.get(file);
    if (known !== undefined) return known;
    const made = { seconds: 0, named: new Map(), passed: new Set<string>(), skipped: [], failures: new Map() };
    this.#files.set(file, made);
    return made;
  }

  #sum(of: (outcome: FileOutcome) => number): number {
    return [...this.#files.values()].reduce((sum, outcome) => sum + of(outcome), 0);
  }
}

/** Prints the failure, and returns its name with the first line of its reason. */
function said(name: string, errors: readonly SerializedError[]): string {
  const texts = errors.map((error) => [error.stack ?? error.message, error["diff"]].filter(Boolean).join("\n"));
  console.log(`\nFAILED ${name}\n${texts.join("\n")}`);
  return `${name}: ${firstLine(errors[0]?.message)}`;
}

function firstLine(text = ""): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}
