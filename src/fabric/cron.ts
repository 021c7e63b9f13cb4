import { Cron } from "croner";
import { EngineError, messageOf } from "../core/errors.ts";

/**
 * When a schedule ticks: by a cron expression in a time zone, or every so many ms since 1970 in UTC (so every hour is on
 * the hour).
 */
export type Timing = { cron: string; timeZone: string } | { everyMs: number };

/** The times at which a schedule ticks, in ms since 1970. */
export type Ticks = {
  /** The first tick after a time; undefined when there is none any more. */
  after(atMs: number): number | undefined;
  /** The newest ticks up to a time, itself included: at most `count`, the oldest first. */
  upTo(atMs: number, count: number): number[];
};

/** Five fields, or six with seconds in front; or a nickname (`@daily`). */
const EXPRESSION = /^\s*(@[a-z]+|[^\s@?]+(\s+[^\s@?]+){4,5})\s*$/i;

/**
 * Where clocks are put forward, a tick at times that do not exist comes right after the gap, if the expression names its
 * hours and minutes; where they are put back, such a tick comes once. Expressions with a wildcard or a step skip the
 * gap, and tick in both passes of the repeated hour.
 *
 * Throws `bad_request_body` for an expression or a time zone that is not understood.
 */
export function ticksOf(timing: Timing): Ticks {
  return "everyMs" in timing ? everyTicks(timing.everyMs) : cronTicks(timing);
}

function everyTicks(everyMs: number): Ticks {
  const latest = (atMs: number) => Math.floor(atMs / everyMs) * everyMs;
  return {
    after: (atMs) => latest(atMs) + everyMs,
    upTo: (atMs, count) => Array.from({ length: count }, (_, i) => latest(atMs) - (count - 1 - i) * everyMs),
  };
}

function cronTicks({ cron: expression, timeZone }: { cron: string; timeZone: string }): Ticks {
  if (!EXPRESSION.test(expression)) throw refused(`${JSON.stringify(expression)} is no cron expression`);
  if (!isTimeZone(timeZone)) throw refused(`there is no time zone ${JSON.stringify(timeZone)}`);
  let cron: Cron;
  try {
    // The other rule takes a time of a list (`30 2,14 * * *`) for one that is skipped in the gap.
    cron = new Cron(expression, { timezone: timeZone, mode: "5-or-6-parts", fixedTimeRule: "no-wildcard" });
  } catch (error) {
    throw refused(messageOf(error).replace(/^Cron\w+: /, ""));
  }
  return {
    after: (atMs) => cron.nextRun(new Date(atMs))?.getTime(),
    upTo: (atMs, count) =>
      cron
        .previousRuns(count, new Date(atMs + 1))
        .map((date) => date.getTime())
        .toReversed(),
  };
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function refused(problem: string): EngineError {
  return new EngineError("bad_request_body", `timing: ${problem}`);
}
