import type { JSX } from "preact";
import type { Draft } from "../../base/drafts.ts";
import { useIsNarrow } from "../../base/use-is-narrow.ts";
import { Button } from "../../components/button.tsx";
import { Select } from "../../components/field.tsx";
import { Menu } from "../../components/menu.tsx";
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
  const { draft, checking, isRunning, onRun, onStop, onChange } = props;
  const isNarrow = useIsNarrow();
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
      {!isNarrow && (
        <Button icon="info" onClick={() => onRun(true)}>
          Explain
        </Button>
      )}
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
      {!isNarrow && (
        <Select
          label="Most rows"
          isLabelHidden
          value={String(draft.limit)}
          options={LIMITS.map((limit) => ({ value: String(limit), title: limitTitle(limit) }))}
          onChange={(limit) => onChange({ limit: Number(limit) })}
        />
      )}
      {isNarrow && <MoreMenu {...props} />}
      <Estimate checking={checking} />
      {!isNarrow && <Tools {...props} />}
    </div>
  );
}

function Tools({ draft, isSchemaShown, onShow, onShowSchema }: QueryBarProps): JSX.Element {
  return (
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
  );
}

/** On a telephone one button has what is not done with every query: the editor and the rows come first. */
function MoreMenu(props: QueryBarProps): JSX.Element {
  const { draft, isSchemaShown, onRun, onChange, onShow, onShowSchema } = props;
  return (
    <Menu
      label="More"
      class="query-more"
      items={[
        {
          id: "tables",
          title: "Tables",
          icon: "catalog",
          isChosen: isSchemaShown,
          run: () => onShowSchema(!isSchemaShown),
        },
        { id: "explain", title: "Explain", icon: "info", run: () => onRun(true) },
        { id: "history", title: "Earlier queries", icon: "book", run: () => onShow("history") },
        { id: "running", title: "Running queries", icon: "query", run: () => onShow("running") },
        ...(draft.text.trim() === ""
          ? []
          : [{ id: "save", title: "Save", icon: "plus" as const, run: () => onShow("save") }]),
        ...LIMITS.map((limit, index) => ({
          id: `limit-${limit}`,
          title: limitTitle(limit),
          heading: index === 0 ? "Most rows" : undefined,
          isChosen: limit === draft.limit,
          run: () => onChange({ limit }),
        })),
      ]}
    >
      More
    </Menu>
  );
}

function limitTitle(limit: number): string {
  return limit === 0 ? "All rows" : `${limit.toLocaleString("en-US")} rows`;
}
