import type { Reporter, SerializedError, TestCase, TestModule } from "vitest/node";

/** How many of the slowest files the summary names. */
const SLOWEST = 10;

/**
 * What runs of vitest came to: says each failure when it happens, and sums up what the last lines of `npm test` need.
 * A file that does not load and an error outside of any test count as one failure each.
 */
export class TestTally implements Reporter {
  passed = 0;
  failed = 0;
  readonly skipped: string[] = [];
  /** Tests that failed, and passed when they were tried again. */
  readonly flaky: string[] = [];
  /** Each failure's name with the first line of its reason. */
  readonly failures: string[] = [];
  readonly #files: { name: string; seconds: number }[] = [];

  onTestCaseResult(test: TestCase): void {
    const name = `${test.module.relativeModuleId} > ${test.fullName}`;
    const { state, errors } = test.result();
    if (state === "skipped") this.skipped.push(name);
    if (state === "failed") this.#fail(name, errors);
    if (state !== "passed") return;
    this.passed++;
    if (test.diagnostic()?.flaky === true) this.flaky.push(`${name}: ${firstLine(errors?.[0]?.message)}`);
  }

  onTestModuleEnd(module: TestModule): void {
    const seconds = module.diagnostic().duration / 1_000;
    this.#files.push({ name: module.relativeModuleId, seconds });
    console.log(`${module.ok() ? "ok    " : "FAILED"} ${seconds.toFixed(1).padStart(6)} s  ${module.relativeModuleId}`);
    const errors = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
    if (errors.length > 0) this.#fail(module.relativeModuleId, errors);
  }

  onTestRunEnd(_modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    if (unhandled.length > 0) this.#fail("an error outside of any test", unhandled);
  }

  /** The files that took the longest, the longest first. */
  slowest(): { name: string; seconds: number }[] {
    return this.#files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  }

  #fail(name: string, errors: readonly SerializedError[]): void {
    this.failed++;
    this.failures.push(`${name}: ${firstLine(errors[0]?.message)}`);
    const texts = errors.map((error) => [error.stack ?? error.message, error["diff"]].filter(Boolean).join("\n"));
    console.log(`\nFAILED ${name}\n${texts.join("\n")}`);
  }
}

function firstLine(text = ""): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}
