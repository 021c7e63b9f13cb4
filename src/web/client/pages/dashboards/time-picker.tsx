import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { clock } from "../../base/clock.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/field.tsx";
import {
  boundsOf,
  problemOf,
  QUICK_RANGES,
  rangeInWords,
  REFRESH_SECS,
  writtenMoment,
  type TimeRange,
} from "./time-range.ts";

type TimePickerProps = {
  range: TimeRange;
  onRange: (range: TimeRange) => void;
  /** Seconds; 0 where it runs when somebody asks. */
  refreshSecs: number;
  onRefreshSecs: (seconds: number) => void;
  onRefresh: () => void;
};

/** The range that all panels show, and how often they run anew. */
export function TimePicker(props: TimePickerProps): JSX.Element {
  const { range, onRange, refreshSecs, onRefreshSecs, onRefresh } = props;
  const [isOpen, setOpen] = useState(false);
  const shifted = (parts: number) => {
    const bounds = boundsOf(range, clock.nowMs());
    if (bounds === undefined) return;
    const byMs = (bounds.toMs - bounds.fromMs) * parts;
    onRange({ from: isoOf(bounds.fromMs + byMs), to: isoOf(bounds.toMs + byMs) });
  };
  const steps: readonly number[] = REFRESH_SECS;
  const choices =
    steps.includes(refreshSecs) || refreshSecs === 0 ? steps : [...steps, refreshSecs].toSorted((a, b) => a - b);
  return (
    <div class="time-picker" role="group" aria-label="Time">
      <Button look="quiet" icon="right" class="time-back" label="The range before" onClick={() => shifted(-1)} />
      <Button onClick={() => setOpen(true)} label={`Time range: ${rangeInWords(range)}`}>
        {rangeInWords(range)}
      </Button>
      <Button look="quiet" icon="right" label="The range after" onClick={() => shifted(1)} />
      <Button icon="refresh" label="Run all panels again" onClick={onRefresh} />
      <Select
        label="Auto-refresh"
        isLabelHidden
        value={String(refreshSecs)}
        options={[
          { value: "0", title: "No refresh" },
          ...choices.map((seconds) => ({ value: String(seconds), title: `Every ${spanInWords(seconds)}` })),
        ]}
        onChange={(seconds) => onRefreshSecs(Number(seconds))}
      />
      {isOpen && <RangeDialog range={range} onRange={onRange} onClose={() => setOpen(false)} />}
    </div>
  );
}

function spanInWords(seconds: number): string {
  if (seconds % 3_600 === 0) return `${seconds / 3_600} h`;
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}

type RangeDialogProps = { range: TimeRange; onRange: (range: TimeRange) => void; onClose: () => void };

function RangeDialog({ range, onRange, onClose }: RangeDialogProps): JSX.Element {
  const [typed, setTyped] = useState(range);
  const [isShown, setShown] = useState(false);
  const written = { from: writtenMoment(typed.from), to: writtenMoment(typed.to) };
  const problem = isShown ? problemOf(written, clock.nowMs()) : undefined;
  const choose = (chosen: TimeRange) => {
    onRange(chosen);
    onClose();
  };
  const submit = () => {
    setShown(true);
    if (problemOf(written, clock.nowMs()) === undefined) choose(written);
  };
  return (
    <Dialog title="Time range" onClose={onClose}>
      <ul class="quick-ranges">
        {QUICK_RANGES.map((quick) => (
          <li key={rangeInWords(quick)}>
            <Button
              look="quiet"
              isPressed={quick.from === range.from && quick.to === range.to}
              onClick={() => choose(quick)}
            >
              {rangeInWords(quick)}
            </Button>
          </li>
        ))}
      </ul>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Field
          label="From"
          value={typed.from}
          onInput={(from) => setTyped({ ...typed, from })}
          error={problem?.from}
          hint="now-6h, now-1d/d, 2026-05-01 or 2026-05-01T12:00:00Z. Without a zone it is UTC."
        />
        <Field label="To" value={typed.to} onInput={(to) => setTyped({ ...typed, to })} error={problem?.to} />
        <div class="dialog-actions">
          <Button look="primary" type="submit">
            Show
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
