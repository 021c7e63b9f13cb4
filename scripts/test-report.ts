/** What a run of vitest came to. */
export type Report = {
  passed: number;
  failed: number;
  skipped: number;
  skippedNames: string[];
  /** Each test that failed, and each file that did not load, with the first line of the reason. */
  failures: string[];
  /** The files that took the longest, the longest first. */
  slowest: { name: string; seconds: number }[];
};

const SLOWEST = 10;

type JsonReport = {
  numPassedTests: number;
  numFailedTests: number;
  testResults: {
    name: string;
    status: string;
    message: string;
    startTime: number;
    endTime: number;
    assertionResults: { status: string; fullName: string; failureMessages?: string[] | null }[];
  }[];
};

/**
 * Reads vitest's JSON report. A file that does not even load has no failed tests and is one failure; so is a run that
 * failed in any way the report does not show (no report at all, an error outside of any test).
 */
export function readReport(text: string | undefined, runSucceeded: boolean): Report {
  const report = text === undefined ? undefined : (JSON.parse(text) as JsonReport);
  const files = report?.testResults ?? [];
  const brokenFiles = files.filter(
    (file) => file.status === "failed" && !file.assertionResults.some((test) => test.status === "failed"),
  );
  const tests = files.flatMap((file) => file.assertionResults);
  const skippedNames = tests.filter((test) => isSkipped(test.status)).map((test) => test.fullName);
  const failed = (report?.numFailedTests ?? 0) + brokenFiles.length;
  return {
    passed: report?.numPassedTests ?? 0,
    failed: failed === 0 && !runSucceeded ? 1 : failed,
    skipped: skippedNames.length,
    skippedNames,
    failures: [
      ...tests
        .filter(({ status }) => status === "failed")
        .map(({ fullName, failureMessages }) => `${fullName}: ${firstLine(failureMessages?.[0])}`),
      ...brokenFiles.map(({ name, message }) => `${name}: ${firstLine(message)}`),
    ],
    slowest: files
      .map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1_000 }))
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, SLOWEST),
  };
}

function firstLine(text = ""): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}

function isSkipped(status: string): boolean {
  return status !== "passed" && status !== "failed";
}
