import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

/** Gives a command a terminal, whose keys and screen are this process's own input and output. */
const PTY = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])) & 255)";
const ENTRY = fileURLToPath(new URL("./cli-child.test-kit.ts", import.meta.url));

export const KEYS = { ctrlC: "\u0003", ctrlD: "\u0004", tab: "\t", up: "\u001b[A", enter: "\r" } as const;

/** A command of ours on a terminal. */
export class PtyCommand {
  readonly #child: ChildProcessWithoutNullStreams;
  /** Everything that was shown. */
  shown = "";
  readonly ended: Promise<number | null>;
  #seen = 0;

  constructor(argv: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn("python3", ["-c", PTY, process.execPath, ENTRY, ...argv], {
      env: { PATH: process.env["PATH"] ?? "", TERM: "xterm", NO_COLOR: "1", ...env },
    });
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => (this.shown += text));
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => (this.shown += text));
    this.ended = new Promise((resolve) => this.#child.once("close", (code) => resolve(code)));
  }

  type(keys: string): void {
    this.#child.stdin.write(keys);
  }

  /** Waits until that is shown behind what was waited for before, and gives what stands between. */
  async until(text: string): Promise<string> {
    await expect.poll(() => this.shown.indexOf(text, this.#seen)).toBeGreaterThanOrEqual(0);
    const end = this.shown.indexOf(text, this.#seen) + text.length;
    const between = this.shown.slice(this.#seen, end);
    this.#seen = end;
    return between;
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}
