import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import type { Content } from "./document.ts";
import { boundsOf, USUAL_RANGE, type TimeRange } from "./time-range.ts";
import { useIsTabShown } from "./use-browser.ts";

/** The range of the address, else that of the dashboard. */
export function useRange(content: Content, { from, to }: TimeRange): TimeRange {
  const { time } = content.settings;
  const own = time ?? USUAL_RANGE;
  const wanted = { from: from === "" ? own.from : from, to: to === "" ? own.to : to };
  // An address may bring anything.
  return boundsOf(wanted, clock.nowMs()) === undefined ? own : wanted;
}

/** Seconds between two runs; 0 where they run when somebody asks. The address has the last word. */
export function refreshOf({ settings }: Content, written: string): number {
  if (written === "") return settings.refresh_secs ?? 0;
  const seconds = Number(written);
  return Number.isInteger(seconds) && seconds >= 5 && seconds <= 86_400 ? seconds : 0;
}

/**
 * The range at one moment, and how often it was looked at anew: all panels show the same range. In a tab that nobody sees
 * time stands still; once it is seen again, a turn that is due comes at once.
 */
export function useTurns(range: TimeRange, refreshSecs: number) {
  const [{ turn, nowMs }, setTurn] = useState(() => ({ turn: 0, nowMs: clock.nowMs() }));
  const again = () => setTurn((now) => ({ turn: now.turn + 1, nowMs: clock.nowMs() }));
  const isShown = useIsTabShown();
  const last = useRef(clock.monotonicMs());
  useEffect(() => {
    last.current = clock.monotonicMs();
  }, [turn]);
  useEffect(() => {
    if (refreshSecs === 0 || !isShown) return;
    const dueMs = Math.max(0, last.current + refreshSecs * 1_000 - clock.monotonicMs());
    return clock.after(dueMs, again);
  }, [turn, refreshSecs, isShown]);
  const { from, to } = range;
  const bounds = useMemo(() => {
    const found = boundsOf({ from, to }, nowMs) ?? boundsOf(USUAL_RANGE, nowMs);
    if (found === undefined) throw new Error("the clock of this machine is outside of the years 1 to 9999");
    return found;
  }, [from, to, nowMs]);
  return { bounds, turn, again };
}

/** The same value while nothing in it has changed, so that panels need not look again. */
export function useShared<T extends ReadonlyMap<string, unknown>>(value: T): T {
  const kept = useRef(value);
  const shape = JSON.stringify([...value]);
  const before = useRef(shape);
  if (before.current !== shape) {
    before.current = shape;
    kept.current = value;
  }
  return kept.current;
}
