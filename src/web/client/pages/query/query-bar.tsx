import type { JSX } from "preact";
import type { Draft } from "../../base/drafts.ts";
import { Button } from "../../components/button.tsx";
import { Select } from "../../components/field.tsx";
import { Estimate } from "./check-result.tsx";
import type { Checking } from "./use-check.ts";

const LIMITS = [100, 1_000, 10_000, 100_000, 1_000_000, 0] as const;

/** A dialog of the page. */
export type Shown = "history" | "running" | "save";

type QueryBarProps = {
  draft: Draft;
  checking: Checking;
  isRunning: boolean;
  isSchemaShown: boolean;
  onRun: (isExplained: boolean) => void;
  onStop: () => void;
  onChange: (part: Partial<Draft>) => void;
  onShow: (what: Shown) => void;
  onShowSchema: (isShown: boolean) => void;
};

/** Between the editor and the rows: what is done with the text, how, and what it would read. */
export function QueryBar(props: QueryBarProps): JSX.Element {
  const { draft, checking, isRunning, isSchemaShown, onRun, onStop, onChange, onShow, onShowSchema } = props;
  return (
    <div class="query-bar">
      {isRunning ? (
        <Button look="danger" icon="stop" onClick={onStop}>
          Stop
        </Button>
      ) : (
        <Button look="primary" icon="play" onClick={() => onRun(false)}>
          Run
        </Button>
      )}
      <Button icon="info" onClick={() => onRun(true)}>
        Explain
      </Button>
      <Select
        label="Language"
        isLabelHidden
        value={draft.language}
        options={[
          { value: "sql", title: "SQL" },
          { value: "kql", title: "KQL" },
        ]}
        onChange={(language) => onChange({ language })}
      />
      <Select
        label="Most rows"
        isLabelHidden
        value={String(draft.limit)}
        options={LIMITS.map((limit) => ({ value: String(limit), title: limitTitle(limit) }))}
        onChange={(limit) => onChange({ limit: Number(limit) })}
      />
      <Estimate checking={checking} />
      <div class="query-tools">
        <Button look="quiet" icon="book" onClick={() => onShow("history")}>
          Earlier queries
        </Button>
        <Button look="quiet" icon="query" onClick={() => onShow("running")}>
          Running queries
        </Button>
        <Button
          look="quiet"
          icon="plus"
          isDisabled={draft.text.trim() === ""}
          reason="There is nothing to save yet."
          onClick={() => onShow("save")}
        >
          Save
        </Button>
        <Button look="quiet" icon="catalog" isPressed={isSchemaShown} onClick={() => onShowSchema(!isSchemaShown)}>
          Tables
        </Button>
      </div>
    </div>
  );
}

function limitTitle(limit: number): string {
  return limit === 0 ? "All rows" : `${limit.toLocaleString("en-US")} rows`;
}
