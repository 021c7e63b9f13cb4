import { messageOf } from "../../../src/core/errors.ts";
import { sleep, systemClock } from "../../../src/core/clock.ts";
import { seededRandom } from "../../../src/core/random.ts";
import { evenArrivals, poissonArrivals, type Arrivals } from "../../support/arrivals.ts";
import type { HttpAnswer, HttpConnection } from "../../support/http-connection.ts";
import { runOpenLoop } from "../../support/open-loop.ts";
import { Mix } from "./mix.ts";
import type { DrivePlan, DriveResult, FromDriver, Pace, RequestResult, ToDriver } from "./plan.ts";
import { requestsOf, type Requests, type Sendable } from "./requests.ts";
import { Samples } from "./samples.ts";
import { connectTo } from "./target.ts";

/** A generator process: see `plan.ts`. */

const clock = systemClock;
/** Requests that wait when the duration is over are sent for so long, so that a short stall at the end is seen whole. */
const DRAIN_MS = 2_000;
/** Answers that come later than this after the end count as failures. */
const LAST_ANSWER_MS = 30_000;
/** How long a client of a closed loop pauses when it was refused. */
const REFUSED_MS = 50;

class Driver {
  readonly #plan: DrivePlan;
  readonly #mix: Mix;
  readonly #lines: readonly Line[];
  readonly #connections: HttpConnection[] = [];
  #firstFailure: string | undefined;
  #endMs = 0;

  constructor(plan: DrivePlan) {
    this.#plan = plan;
    this.#mix = new Mix(plan.requests.map(({ share }) => share));
    this.#lines = plan.requests.map((request) => new Line(requestsOf(request, plan.target)));
  }

  async open(): Promise<void> {
    while (this.#connections.length < this.#plan.connections) this.#connections.push(await this.#connect());
  }

  async run(startAtMs: number): Promise<DriveResult> {
    await sleep(clock, Math.max(0, startAtMs - clock.nowMs()));
    const startMs = clock.monotonicMs() + startAtMs - clock.nowMs();
    this.#endMs = startMs + this.#plan.durationMs;
    const cpuBefore = process.cpuUsage();
    // Breaks the connections that have had no answer by then, which their requests take for a failure.
    const last = clock.after(this.#endMs - clock.monotonicMs() + DRAIN_MS + LAST_ANSWER_MS, () => this.#closeAll());
    const { pace } = this.#plan;
    const end = pace === undefined ? await this.#closedLoop() : await this.#openLoop(pace, startMs);
    last.cancel();
    const { user, system } = process.cpuUsage(cpuBefore);
    this.#closeAll();
    const requests = this.#lines.map((line) => line.result());
    return { ...end, cpuSeconds: (user + system) / 1e6, firstFailure: this.#firstFailure, requests };
  }

  async #openLoop(pace: Pace, startMs: number): Promise<LoopEnd> {
    const end = await runOpenLoop({
      clock,
      startMs,
      arrivals: arrivalsOf(pace),
      durationMs: this.#plan.durationMs,
      drainMs: DRAIN_MS,
      connections: this.#connections.map((_, index) => index),
      send: async (index, dueMs) => {
        await this.#sendNext(index, dueMs);
        return index;
      },
    });
    return {
      ...end,
      abandonedMs: Float64Array.from(end.abandonedMs),
      latenessMs: Float64Array.from(end.latenessMs),
    };
  }

  async #closedLoop(): Promise<LoopEnd> {
    let offered = 0;
    const client = async (index: number) => {
      for (let nowMs = clock.monotonicMs(); nowMs < this.#endMs; nowMs = clock.monotonicMs()) {
        offered++;
        if ((await this.#sendNext(index, nowMs)) !== 200) await sleep(clock, REFUSED_MS);
      }
    };
    await Promise.all(this.#connections.map(async (_, index) => await client(index)));
    return { offered, backlog: 0, abandonedMs: new Float64Array(), latenessMs: new Float64Array() };
  }

  /** Sends what the mix says over that connection, or another in its place; resolves with the answer's status. */
  async #sendNext(index: number, dueMs: number): Promise<number | undefined> {
    const line = this.#lines[this.#mix.next()];
    if (line === undefined) throw new Error("the plan has no requests");
    const sendable = line.next();
    try {
      const connection = await this.#usable(index);
      const sentMs = clock.monotonicMs();
      const answer = await connection.send(sendable.head, sendable.body);
      this.#count(line, sendable, answer, { dueMs, sentMs });
      return answer.status;
    } catch (error) {
      this.#fail(line, messageOf(error));
      return undefined;
    }
  }

  #count(line: Line, sendable: Sendable, answer: HttpAnswer, times: { dueMs: number; sentMs: number }): void {
    if (answer.status === 429) {
      line.refused++;
      return;
    }
    const complaint =
      answer.status === 200 ? sendable.complaintAbout(answer) : `the answer was ${answer.status}: ${answer.body}`;
    if (complaint === undefined) line.accept(sendable, times, this.#endMs);
    else this.#fail(line, complaint);
  }

  #fail(line: Line, reason: string): void {
    line.failed++;
    this.#firstFailure ??= reason;
  }

  async #usable(index: number): Promise<HttpConnection> {
    const connection = this.#connections[index];
    if (connection?.isClosed === false) return connection;
    const next = await this.#connect();
    this.#connections[index] = next;
    return next;
  }

  #closeAll(): void {
    for (const connection of this.#connections) connection.close();
  }

  #connect(): Promise<HttpConnection> {
    return connectTo(this.#plan.target);
  }
}

type LoopEnd = Pick<DriveResult, "offered" | "backlog" | "abandonedMs" | "latenessMs">;

/** The requests of one entry of the plan, and what became of them. */
class Line {
  readonly #requests: Requests;
  readonly #latencyMs = new Samples();
  readonly #serviceMs = new Samples();
  #sent = 0;
  #accepted = 0;
  #acceptedInTime = 0;
  #rows = 0;
  #bytes = 0;
  refused = 0;
  failed = 0;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  next(): Sendable {
    return this.#requests(this.#sent++);
  }

  accept({ rows, bytes }: Sendable, { dueMs, sentMs }: { dueMs: number; sentMs: number }, endMs: number): void {
    const nowMs = clock.monotonicMs();
    this.#accepted++;
    if (nowMs <= endMs) this.#acceptedInTime++;
    this.#latencyMs.add(nowMs - dueMs);
    this.#serviceMs.add(nowMs - sentMs);
    this.#rows += rows;
    this.#bytes += bytes;
  }

  result(): RequestResult {
    return {
      accepted: this.#accepted,
      acceptedInTime: this.#acceptedInTime,
      refused: this.refused,
      failed: this.failed,
      latencyMs: this.#latencyMs.values(),
      serviceMs: this.#serviceMs.values(),
      rows: this.#rows,
      bytes: this.#bytes,
    };
  }
}

function arrivalsOf(pace: Pace): Arrivals {
  if ("phase" in pace) return evenArrivals(pace.perSecond, pace.phase);
  return poissonArrivals(pace.perSecond, seededRandom(pace.poissonSeed));
}

/** Resolves when the message is on its way: one that is still being written is lost with the process. */
function tell(message: FromDriver): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()));
}

let driver: Driver | undefined;

async function obey(message: ToDriver): Promise<void> {
  if (message.kind === "prepare") {
    driver = new Driver(message.plan);
    await driver.open();
    await tell({ kind: "ready" });
  } else if (driver !== undefined) {
    await tell({ kind: "done", result: await driver.run(message.startAtMs) });
    process.exit();
  }
}

process.on("message", (message: ToDriver) => {
  obey(message).catch((error: unknown) => {
    console.error(messageOf(error));
    process.exit(1);
  });
});
// A terminal's Ctrl-C reaches this process, too; whoever started it ends it.
process.on("SIGINT", () => undefined);
process.on("disconnect", () => process.exit(1));
