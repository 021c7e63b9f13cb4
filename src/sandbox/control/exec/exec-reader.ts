import type { Readable } from "node:stream";
import { z } from "zod";
import { fullBackoffMs } from "../../../core/backoff.ts";
import { pause, type Clock } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import { linesOf } from "../../../core/lines.ts";
import type { OutputFrom } from "../../contract/link/calls.ts";

/** How long a connection that broke may take to come back. */
const RECONNECT_MS = 15_000;
const PAUSE = { firstMs: 50, mostMs: 1_000 } as const;
const MOST_LINE_BYTES = 1024 * 1024;

const from = z.int().min(0);
const output = { data: z.string(), encoding: z.literal("base64").optional(), at: from };
const execEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("stdout"), ...output }),
  z.object({ type: z.literal("stderr"), ...output }),
  z.object({ type: z.literal("skipped"), stream: z.enum(["stdout", "stderr"]), bytes: from }),
  z.object({
    type: z.literal("exit"),
    exit_code: z.number().nullable(),
    signal: z.string().nullable(),
    timed_out: z.boolean(),
  }),
]);

/** An event, and how much of each stream there was with it; or why no more come, though the command may go on. */
export type ExecNews =
  | { type: "event"; event: z.output<typeof execEvent>; had: OutputFrom }
  | { type: "broken"; error: EngineError };

export type ExecReaderOptions = {
  /** What the node sends of the command. */
  body: Readable;
  /** Bytes of each stream that were had before. */
  from: OutputFrom;
  /** Asks for what comes after that, through whatever leads to the node. */
  attach: (from: OutputFrom) => Promise<Readable>;
  clock: Clock;
  /** Aborted when nobody reads any more: it ends then. */
  signal: AbortSignal;
};

/**
 * What a command writes and how it ends, over connections to its node that may break: each goes on where the one before
 * has stopped. `broken` is the last when none comes back in time, or the node does not know the command.
 */
export async function* readExec({
  body,
  from: start,
  attach,
  clock,
  signal,
}: ExecReaderOptions): AsyncGenerator<ExecNews> {
  const had = { ...start };
  let current: Readable | undefined = body;
  let sinceMs = clock.monotonicMs();
  while (!signal.aborted) {
    try {
      current ??= await reattach({ attach: () => attach({ ...had }), clock, signal, untilMs: sinceMs + RECONNECT_MS });
    } catch (error) {
      if (!signal.aborted) yield { type: "broken", error: brokenBy(error) };
      return;
    }
    for await (const event of eventsOf(current, signal)) {
      sinceMs = clock.monotonicMs();
      if (event.type === "skipped") had[event.stream] += event.bytes;
      else if (event.type !== "exit") had[event.type] = event.at;
      yield { type: "event", event, had: { ...had } };
      if (event.type === "exit") return;
    }
    current = undefined;
    await pause(clock, PAUSE.firstMs, signal);
  }
}

/** Ends where the body does, or breaks. */
async function* eventsOf(body: Readable, signal: AbortSignal): AsyncGenerator<z.output<typeof execEvent>> {
  const giveUp = () => void body.destroy();
  signal.addEventListener("abort", giveUp, { once: true });
  if (signal.aborted) giveUp();
  try {
    for await (const line of linesOf(body, { maxLineBytes: MOST_LINE_BYTES, tooLong })) {
      yield execEvent.parse(JSON.parse(line));
    }
  } catch (error) {
    // What is no line of ours is an error of the node; what broke is asked for again.
    if (error instanceof z.ZodError || error instanceof SyntaxError) throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
    body.destroy();
  }
}

function tooLong(): EngineError {
  return new EngineError("internal", "a node sends a line that is too long");
}

type Reattach<T> = {
  attach: () => Promise<T>;
  clock: Clock;
  signal: AbortSignal;
  untilMs: number;
  /** After which errors it is tried again. */
  isWorthIt?: (error: unknown) => boolean;
};

/** Tries again while the node may come back, the node itself or the connection to it. */
export async function reattach<T>({
  attach,
  clock,
  signal,
  untilMs,
  isWorthIt = mayComeBack,
}: Reattach<T>): Promise<T> {
  for (let failures = 0; ; failures++) {
    const pauseMs = fullBackoffMs(PAUSE, failures);
    try {
      return await attach();
    } catch (error) {
      if (signal.aborted || !isWorthIt(error) || clock.monotonicMs() + pauseMs > untilMs) throw error;
    }
    await pause(clock, pauseMs, signal);
  }
}

/** Whether the error is about the moment. A node that has just begun again has not taken up its machines yet. */
export function mayComeBack(error: unknown): boolean {
  if (!(error instanceof EngineError)) return true;
  return ["unavailable", "sandbox_timeout", "sandbox_invalid_state", "internal"].includes(error.code);
}

function brokenBy(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  return new EngineError("unavailable", `the connection to the node broke: ${messageOf(error)}`, { cause: error });
}
