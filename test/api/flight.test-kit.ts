/** Arrow Flight as tests ask it: by pyarrow, and by the gRPC library of Node where more must be seen. */
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { TicketSchema } from "../../src/query/flight/flight-proto.test-kit.ts";
import { cleanEnv, type Engine } from "../support/engine.ts";

const INSTALL = fileURLToPath(new URL("../../.ci/install-pyarrow", import.meta.url));
const CLIENT = fileURLToPath(new URL("flight-client.py", import.meta.url));

export const DO_GET = "/arrow.flight.protocol.FlightService/DoGet";

/** The Python that has pyarrow, or why there is none; without one the tests that need it are skipped, which fails in CI. */
export function findPyarrow(): { python: string; isThere: boolean } {
  const { status, stdout, stderr } = spawnSync(INSTALL, { encoding: "utf8", timeout: 600_000 });
  if (status !== 0) {
    if (process.env["CI"] === "true") throw new Error(`pyarrow is not installed: ${stderr}`);
    process.stderr.write(`skipped for lack of pyarrow: apt-get install python3-venv, and run .ci/install-pyarrow\n`);
  }
  return { python: stdout.trim(), isThere: status === 0 };
}

/** Where the server serves Flight, by its log: `127.0.0.1:40000`. */
export function flightAddress(engine: Engine): string {
  const address = /"address":"([^"]+)","protocol":"Arrow Flight"/.exec(engine.log())?.[1];
  if (address === undefined) throw new Error(`Flight is not served:\n${engine.log()}`);
  return address;
}

export type PyAnswer = {
  rows?: number;
  schema?: Record<string, string>;
  first?: Record<string, unknown>[];
  /** Bytes of the largest batch. */
  largest?: number;
  metadata?: Record<string, string>;
  error?: string;
  message?: string;
};

export type PyAsk = {
  ticket?: unknown;
  call?: string;
  headers?: Record<string, string>;
  /** Seconds. */
  timeout?: number;
  /** Reads so many, pausing so many seconds after each, and cancels. */
  batches?: number;
  pause?: number;
};

export type PyClient = { ask(ask: PyAsk): Promise<PyAnswer>; close(): void };

/** A process with a pyarrow client, which is asked one thing after the other. */
export function pyClient(python: string, address: string): PyClient {
  const env = { ...cleanEnv(), PYTHONDONTWRITEBYTECODE: "1" };
  const child = spawn(python, [CLIENT, `grpc://${address}`], { env, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    ask: async (ask) => {
      child.stdin.write(`${JSON.stringify(ask)}\n`);
      const line = await lines.next();
      if (line.done === true) throw new Error("the Python client ended");
      return JSON.parse(line.value) as PyAnswer;
    },
    close: () => void child.kill(),
  };
}

/** The request message of `DoGet`. */
export function ticketMessage(ticket: unknown): Uint8Array {
  const text = typeof ticket === "string" ? ticket : JSON.stringify(ticket);
  return toBinary(TicketSchema, create(TicketSchema, { ticket: Buffer.from(text) }));
}
