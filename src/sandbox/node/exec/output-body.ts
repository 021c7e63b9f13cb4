import { Readable } from "node:stream";
import type { ExecEvent, OutputFrom } from "../../contract/link/calls.ts";
import type { ExecOutput } from "../../runtime/runtime.ts";
import { TextPieces, type TextPiece } from "./text-pieces.ts";

/** Lines of JSON about what a command writes, one `ExecEvent` each, as pieces of a body. */
export class ExecLines {
  readonly #pieces: Record<"stdout" | "stderr", TextPieces>;

  constructor({ stdout, stderr }: OutputFrom) {
    this.#pieces = { stdout: new TextPieces(stdout), stderr: new TextPieces(stderr) };
  }

  /** Empty where what came waits for more. */
  encode(output: ExecOutput): Uint8Array {
    return Buffer.from(
      this.#eventsOf(output)
        .map((event) => `${JSON.stringify(event)}\n`)
        .join(""),
    );
  }

  #eventsOf(output: ExecOutput): ExecEvent[] {
    switch (output.type) {
      case "exit": {
        const { exitCode = null, signal = null, timedOut } = output;
        const rest = [
          ...piecesOf("stdout", this.#pieces.stdout.end()),
          ...piecesOf("stderr", this.#pieces.stderr.end()),
        ];
        return [...rest, { type: "exit", exit_code: exitCode, signal, timed_out: timedOut }];
      }
      case "skipped": {
        const { stream, bytes } = output;
        return [...piecesOf(stream, this.#pieces[stream].skip(bytes)), { type: "skipped", stream, bytes }];
      }
      case "stdout":
      case "stderr":
        return piecesOf(output.type, this.#pieces[output.type].push(output.bytes));
    }
  }
}

function piecesOf(type: "stdout" | "stderr", pieces: readonly TextPiece[]): ExecEvent[] {
  return pieces.map(({ data, encoding, at }) => ({ type, data, ...(encoding !== undefined && { encoding }), at }));
}

/**
 * What a command writes as a body that is read no faster than it is sent. Ends after its last output, which says how the
 * command ended; breaks where that does not come. `open` begins to read; its signal is aborted when the body is given up.
 */
export function outputBody(
  open: (signal: AbortSignal) => AsyncIterable<ExecOutput>,
  encode: (output: ExecOutput) => Uint8Array,
): Readable {
  const reading = new AbortController();
  const iterator = open(reading.signal)[Symbol.asyncIterator]();
  const next = async (): Promise<Uint8Array | null> => {
    for (;;) {
      const step = await iterator.next();
      if (step.done === true) return null;
      const bytes = encode(step.value);
      if (bytes.length > 0) return bytes;
    }
  };
  return new Readable({
    read() {
      next().then(
        (bytes) => void this.push(bytes),
        (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
      );
    },
    destroy(error, done) {
      // What is being read breaks by that, and is nobody's any more.
      reading.abort();
      done(error);
    },
  });
}
