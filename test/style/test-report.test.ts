import { describe, expect, it } from "vitest";
import { readReport } from "../../scripts/test-report.ts";

const file = (status: string, ...tests: string[]) => ({
  name: "a.test.ts",
  status,
  startTime: 1_000,
  endTime: 3_500,
  message: status === "failed" ? "\nit does not load\n  at a line" : "",
  assertionResults: tests.map((test, i) => ({
    status: test,
    fullName: `test ${i}`,
    failureMessages: test === "failed" ? ["Error: 1 is not 2\n  at a line"] : [],
  })),
});
const report = (passed: number, failed: number, ...testResults: ReturnType<typeof file>[]) =>
  JSON.stringify({ numPassedTests: passed, numFailedTests: failed, testResults });

describe("test report", () => {
  it("counts", () => {
    const text = report(2, 1, file("failed", "passed", "passed", "failed", "pending", "skipped", "todo"));
    expect(readReport(text, false)).toEqual({
      passed: 2,
      failed: 1,
      skipped: 3,
      skippedNames: ["test 3", "test 4", "test 5"],
      failures: ["test 2: Error: 1 is not 2"],
      slowest: [{ name: "a.test.ts", seconds: 2.5 }],
    });
  });

  it("counts a file that does not load as a failure", () => {
    expect(readReport(report(1, 0, file("passed", "passed"), file("failed")), false)).toMatchObject({
      failed: 1,
      failures: ["a.test.ts: it does not load"],
    });
  });

  it("never shows a failed run as passed", () => {
    expect(readReport(report(1, 0, file("passed", "passed")), false)).toMatchObject({ passed: 1, failed: 1 });
    expect(readReport(undefined, false)).toMatchObject({ passed: 0, failed: 1 });
    expect(readReport(report(1, 0, file("passed", "passed")), true)).toMatchObject({ passed: 1, failed: 0 });
  });
});
