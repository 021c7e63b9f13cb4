import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { clock } from "../base/clock.ts";
import { Button } from "../components/button.tsx";
import { Field, Select } from "../components/field.tsx";
import { Icon } from "../components/icons.tsx";
import {
  formatMoment,
  isRelative,
  momentOf,
  momentsOf,
  moved,
  rangeOf,
  rangeTitle,
  USUAL_RANGES,
  widened,
  zoneTitle,
  type TimeRange,
} from "./time-range.ts";
import type { Zone } from "./calendar.ts";
import "./range-picker.css";

export type RangePickerProps = {
  range: TimeRange;
  zone: Zone;
  onRange: (range: TimeRange) => void;
  onZone: (zone: Zone) => void;
};

/** Which time a page is about: usual ranges, expressions or moments, steps back and forth, and the zone. */
export function RangePicker({ range, zone, onRange, onZone }: RangePickerProps): JSX.Element {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const step = (change: "earlier" | "later" | "wider"): void => {
    const moments = momentsOf(range, clock.nowMs(), zone);
    if (moments === undefined) return;
    onRange(rangeOf(change === "wider" ? widened(moments) : moved(moments, change === "later" ? 1 : -1)));
  };
  const choose = (next: TimeRange): void => {
    panel.current?.hidePopover();
    onRange(next);
  };
  return (
    <div class="range-picker">
      <Button look="plain" class="range-step" label="Earlier" onClick={() => step("earlier")}>
        ‹
      </Button>
      <button
        ref={button}
        type="button"
        class="button button-plain range-button"
        aria-expanded={isOpen}
        aria-haspopup="dialog"
        popovertarget={id}
      >
        <span class="unseen">Time range:</span>
        <span>{rangeTitle(range, zone)}</span>
        <small>{zone === "utc" ? "UTC" : "local"}</small>
        <Icon name="down" size={14} />
      </button>
      <Button look="plain" class="range-step" label="Later" onClick={() => step("later")}>
        ›
      </Button>
      <Button look="plain" class="range-step" label="Twice as long" onClick={() => step("wider")}>
        ↔
      </Button>
      <div
        id={id}
        ref={panel}
        class="range-panel"
        popover="auto"
        role="dialog"
        aria-label="Time range"
        onToggle={({ newState }) => {
          setOpen(newState === "open");
          if (newState === "open") place(panel.current, button.current);
        }}
      >
        {isOpen && <Panel range={range} zone={zone} onRange={choose} onZone={onZone} />}
      </div>
    </div>
  );
}

/** Below the button, and on the screen. */
function place(panel: HTMLElement | null, button: HTMLElement | null): void {
  if (panel === null || button === null) return;
  const { left, bottom } = button.getBoundingClientRect();
  const most = Math.max(8, document.documentElement.clientWidth - panel.offsetWidth - 8);
  panel.style.left = `${Math.min(Math.max(left, 8), most)}px`;
  panel.style.top = `${Math.max(8, Math.min(bottom + 4, innerHeight - panel.offsetHeight - 8))}px`;
}

function Panel({ range, zone, onRange, onZone }: RangePickerProps): JSX.Element {
  const [from, setFrom] = useState(() => typed(range.from, zone));
  const [to, setTo] = useState(() => typed(range.to, zone));
  useEffect(() => {
    setFrom(typed(range.from, zone));
    setTo(typed(range.to, zone));
  }, [range.from, range.to, zone]);
  const nowMs = clock.nowMs();
  const wrong = (text: string) =>
    momentOf(text, nowMs, zone) === undefined ? "Write 2026-01-02 03:04:05, or now-15m." : undefined;
  const [wrongFrom, wrongTo] = [wrong(from), wrong(to)];
  const areOrdered = momentsOf({ from, to }, nowMs, zone) !== undefined;
  const apply = (): void => {
    if (areOrdered) onRange({ from: written(from, zone), to: written(to, zone) });
  };
  return (
    <div class="range-parts">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          apply();
        }}
      >
        <Field label="From" value={from} onInput={setFrom} isMonospaced error={wrongFrom} />
        <Field
          label="To"
          value={to}
          onInput={setTo}
          isMonospaced
          error={wrongTo ?? (wrongFrom === undefined && !areOrdered ? "It ends before it begins." : undefined)}
        />
        <Button look="primary" type="submit" isDisabled={!areOrdered} reason="Enter a start that is before the end.">
          Use this range
        </Button>
        <Select
          label="Zone"
          value={zone}
          options={(["utc", "browser"] as const).map((value) => ({ value, title: zoneTitle(value) }))}
          onChange={onZone}
        />
      </form>
      <ul class="range-usual" aria-label="Usual ranges">
        {USUAL_RANGES.map(({ title, ...usual }) => (
          <li key={title}>
            <button
              type="button"
              class="range-choice"
              aria-current={usual.from === range.from && usual.to === range.to ? "true" : undefined}
              onClick={() => onRange(usual)}
            >
              {title}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Moments as the zone has them, expressions as they are. */
function typed(text: string, zone: Zone): string {
  const ms = isRelative({ from: text, to: "" }) ? undefined : momentOf(text, 0, zone);
  return ms === undefined ? text : formatMoment(ms, zone);
}

/** Moments with their offset: an address means the same in every zone. */
function written(text: string, zone: Zone): string {
  const ms = isRelative({ from: text, to: "" }) ? undefined : momentOf(text, 0, zone);
  return ms === undefined ? text.trim() : new Date(ms).toISOString();
}
