import { CLIENT_METHODS, type AnyMessage, type Stream } from "@agentclientprotocol/sdk";
import { z } from "zod";
import { Lines } from "../lines.ts";
import type { Exec, ExecOutput } from "../../runtime/runtime.ts";
import { AgentFault } from "./fault.ts";

/** Of one message: images are in them. */
const FRAME_BYTES = 8 * 1_024 * 1_024;
const SHOWN_CHARS = 200;
const NEWLINE = 0x0a;

const id = z.union([z.string(), z.number(), z.null()]);
const jsonrpc = z.literal("2.0");
const request = z.object({ jsonrpc, id, method: z.string(), params: z.unknown().optional() });
const notification = z.strictObject({ jsonrpc, method: z.string(), params: z.unknown().optional() });
const result = z.strictObject({ jsonrpc, id, result: z.unknown().refine((result) => result !== undefined) });
const failure = z.strictObject({
  jsonrpc,
  id,
  error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }),
});

/** Not a union, which tries each in turn: agents say many messages. */
function schemaOf(message: unknown): z.ZodType<AnyMessage> {
  if (typeof message !== "object" || message === null) return request;
  if ("method" in message) return "id" in message ? request : notification;
  return "error" in message ? failure : result;
}

export type StdioOptions = {
  /** Parameters of an update of a session. What it throws ends the connection. */
  onUpdate: (params: unknown) => void;
  /** Resolves when what the next message says can be written down. */
  room: () => Promise<void>;
  onErrorLine: (line: string) => void;
  /** Aborted when nobody reads any more. */
  signal: AbortSignal;
};

/**
 * The standard input and output of an agent as messages of JSON-RPC, one a line. Nothing is read ahead of `room`: an
 * agent that floods waits in its own write. The stream breaks with an `AgentFault` when the agent ends, or says what is
 * no message; answers to what was not asked are passed over.
 */
export function stdioOf(exec: Exec, options: StdioOptions): Stream {
  const asked = new Set<unknown>();
  return {
    readable: ReadableStream.from(messages(exec, asked, options)),
    writable: new WritableStream<AnyMessage>({
      async write(sent) {
        if ("method" in sent && "id" in sent) asked.add(sent.id);
        await exec.write(Buffer.from(`${JSON.stringify(sent)}\n`));
      },
    }),
  };
}

async function* messages(exec: Exec, asked: Set<unknown>, options: StdioOptions): AsyncGenerator<AnyMessage> {
  const frames = new Frames();
  let lastLine = "";
  const errors = new Lines((line) => {
    if (line.trim() !== "") lastLine = line;
    options.onErrorLine(line);
  });
  for await (const output of exec.output(undefined, options.signal)) {
    if (output.type === "stderr") errors.push(output.bytes);
    if (output.type === "skipped") {
      if (output.stream === "stdout") throw new AgentFault(`${output.bytes} bytes of what it said are lost`);
    }
    if (output.type === "exit") {
      errors.end();
      throw new AgentFault(endOf(output, lastLine));
    }
    if (output.type !== "stdout") continue;
    for (const frame of frames.push(output.bytes)) {
      const read = messageIn(frame);
      if (read === undefined) continue;
      if (!("method" in read) && !asked.delete(read.id)) continue;
      await options.room();
      // Not left to the SDK, which checks each against all kinds that it knows, and tells of others on the console.
      if ("method" in read && read.method === CLIENT_METHODS.session_update) options.onUpdate(read.params);
      else yield read;
    }
  }
}

/** Undefined for an empty line. Throws `AgentFault`. */
function messageIn(frame: string): AnyMessage | undefined {
  if (frame.trim() === "") return undefined;
  try {
    const message: unknown = JSON.parse(frame);
    return schemaOf(message).parse(message);
  } catch (error) {
    throw new AgentFault(`it said what is no message of the protocol: ${frame.slice(0, SHOWN_CHARS)}`, {
      cause: error,
    });
  }
}

function endOf({ exitCode, signal }: Extract<ExecOutput, { type: "exit" }>, lastLine: string): string {
  const how =
    exitCode === undefined ? `it was killed by ${signal ?? "a signal"}` : `it ended with exit code ${exitCode}`;
  return lastLine === "" ? how : `${how}; its last line: ${lastLine.slice(0, SHOWN_CHARS)}`;
}

/** Cuts bytes into lines of limited length, however they come. */
class Frames {
  #parts: Uint8Array[] = [];
  #bytes = 0;

  *push(bytes: Uint8Array): Generator<string> {
    let at = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, at)) {
      this.#keep(bytes.subarray(at, end));
      at = end + 1;
      yield this.#take();
    }
    // Not a view of what may be reused or large.
    this.#keep(Uint8Array.from(bytes.subarray(at)));
  }

  #keep(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > FRAME_BYTES) throw new AgentFault(`it said a message of more than ${FRAME_BYTES} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }

  #take(): string {
    const line = Buffer.concat(this.#parts).toString("utf8");
    this.#parts = [];
    this.#bytes = 0;
    return line;
  }
}
