import type { Exec, ExecOutput } from "../runtime/runtime.ts";
import { Lines } from "./lines.ts";

/** Follows a command to its end, line by line. Rejects unless it succeeds; the message has its last line. */
export async function followOutput(
  exec: Exec,
  onLine: (line: string, stream: "stdout" | "stderr") => void,
): Promise<void> {
  let lastLine = "";
  const linesOf = (stream: "stdout" | "stderr") =>
    new Lines((line) => {
      if (line.trim() !== "") lastLine = line;
      onLine(line, stream);
    });
  const lines = { stdout: linesOf("stdout"), stderr: linesOf("stderr") };
  for await (const output of exec.output()) {
    if (output.type === "skipped") continue;
    if (output.type !== "exit") {
      lines[output.type].push(output.bytes);
      continue;
    }
    lines.stdout.end();
    lines.stderr.end();
    const problem = problemOf(output);
    if (problem === undefined) return;
    throw new Error(lastLine === "" ? problem : `${problem}; its last line: ${lastLine.slice(0, 500)}`);
  }
  throw new Error("its end was not seen");
}

function problemOf({ exitCode, signal, timedOut }: Extract<ExecOutput, { type: "exit" }>): string | undefined {
  if (timedOut) return "it took too long, and was killed";
  if (exitCode === 0) return undefined;
  return exitCode === undefined ? `it was killed by ${signal ?? "a signal"}` : `it ended with exit code ${exitCode}`;
}
