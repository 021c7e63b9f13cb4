import { pino, stdSerializers, symbols, type DestinationStream, type Logger } from "pino";
import { systemClock, type Clock } from "./clock.ts";
import { logText } from "./log-text.ts";

export type Log = Logger;

/** What the line of an answered request says; there is one for each, so they are written many at a time. */
export const ANSWERED = "answered";

/**
 * On standard error, so that standard output stays for results: on a terminal a readable line for each event, elsewhere a
 * JSON object.
 */
export function createLog(level: string, destination: DestinationStream = standardError()): Log {
  return pino({ level, base: null, serializers: { err: stdSerializers.err }, timestamp: isoTime }, destination);
}

/** A log that drops everything, for tests. */
export const silentLog: Log = pino({ level: "silent" });

/** The same for people: `isTTY` and the environment say whether with colours. */
export function readable(write: (text: string) => void, env: Readonly<Record<string, string | undefined>>) {
  const colours = (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
  return { write: (line: string) => write(logText(line, { colours })) };
}

/** Of all logs of this process: what waits is written in order, and one listener writes the rest when it ends. */
let gathered: GatheredOutput | undefined;

function standardError(): DestinationStream {
  if (process.stderr.isTTY) return readable((text) => void process.stderr.write(text), process.env);
  if (gathered !== undefined) return gathered;
  const output = new GatheredOutput(pino.destination({ dest: 2, sync: true }), systemClock);
  process.once("exit", () => output.flush());
  gathered = output;
  return output;
}

let lastMs = 0;
let lastTime = "";

/** Writing a time takes longer than writing the rest of a line, and a busy server writes many in one millisecond. */
function isoTime(): string {
  const nowMs = systemClock.nowMs();
  if (nowMs !== lastMs) lastTime = `,"time":"${new Date(nowMs).toISOString()}"`;
  lastMs = nowMs;
  return lastTime;
}

const GATHERED_CHARS = 64 * 1024;
const GATHERED_MS = 100;

/**
 * Lines of requests wait for others, up to a tenth of a second: a system call for each would cost a busy server several
 * percent of its time. Any other line is written at once, with those that wait before it. A process that is killed loses
 * what waits.
 */
export class GatheredOutput implements DestinationStream {
  readonly [symbols.needsMetadataGsym] = true;
  /** Of the line that comes next: pino sets it. */
  lastMsg: string | undefined;
  readonly #destination: DestinationStream;
  readonly #clock: Pick<Clock, "after">;
  #held = "";
  #isDue = false;

  constructor(destination: DestinationStream, clock: Pick<Clock, "after">) {
    this.#destination = destination;
    this.#clock = clock;
  }

  write(line: string): void {
    this.#held += line;
    if (this.lastMsg !== ANSWERED || this.#held.length >= GATHERED_CHARS) this.flush();
    else if (!this.#isDue) {
      this.#isDue = true;
      this.#clock.after(GATHERED_MS, () => this.#onDue(), { background: true });
    }
  }

  flush(): void {
    const held = this.#held;
    this.#held = "";
    if (held !== "") this.#destination.write(held);
  }

  #onDue(): void {
    this.#isDue = false;
    this.flush();
  }
}
