import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../../components/button.tsx";
import { Icon } from "../../components/icons.tsx";
import type { MenuItem } from "../../components/menu-props.ts";
import { Menu } from "../../components/menu.tsx";
import { Spinner } from "../../components/spinner.tsx";
import { knownType, panelName, type Panel } from "./document.ts";
import { Handle, type Moving } from "./handles.tsx";
import { COLUMNS } from "./layout.ts";
import { PanelBody } from "./panel-body.tsx";
import { bound, type Parameters } from "./parameters.ts";
import type { PreparedQuery } from "./run-query.ts";
import type { Bounds } from "./time-range.ts";
import { useIsInView } from "./use-browser.ts";
import { usePanelRun } from "./use-panel-run.ts";

export type PanelFrameProps = {
  panel: Panel;
  parameters: Parameters;
  bounds: Bounds;
  /** Grows when everything is to run anew. */
  turn: number;
  /** Whether nothing new may begin, as in a tab that nobody sees. */
  isPaused: boolean;
  isMaximised: boolean;
  moving: Moving | undefined;
  onMaximise: () => void;
  onRange: (fromSeconds: number, toSeconds: number) => void;
  /** Only while the dashboard is edited. */
  editing: { onEdit: () => void; onCopy: () => void; onDelete: () => void } | undefined;
};

/** Rows of a query at most: a chart has no more points, and nobody reads more lines. */
const ROWS_OF_CHART = 20_000;
const ROWS_OF_TABLE = 10_000;
const ROWS_OF_LOGS = 1_000;

/** A panel: it runs its queries while it can be seen, and what goes wrong stays within it. */
export function PanelFrame(props: PanelFrameProps): JSX.Element {
  const { panel, parameters, bounds, turn, isPaused, isMaximised, moving, editing } = props;
  const element = useRef<HTMLElement>(null);
  const isInView = useIsInView(element);
  const [retries, setRetries] = useState(0);
  const again = () => setRetries((count) => count + 1);
  const { queries, waiting, problem } = useMemo(() => prepared(panel, parameters), [panel, parameters]);
  const isReady = queries.length > 0 && waiting === undefined && problem === undefined;
  const mayRun = isReady && isInView && !isPaused;
  const run = usePanelRun(
    queries,
    mayRun ? JSON.stringify([turn, retries, panel.type, queries]) : undefined,
    panel.type === "table",
  );
  const name = panelName(panel);
  const { x, y, w, h } = panel.grid;
  const items: MenuItem[] = [
    ...(editing === undefined
      ? []
      : [
          { id: "edit", title: "Edit", run: editing.onEdit },
          { id: "copy", title: "Duplicate", icon: "copy" as const, run: editing.onCopy },
          { id: "delete", title: "Delete", icon: "trash" as const, run: editing.onDelete },
        ]),
    { id: "again", title: "Run again", icon: "refresh" as const, run: again },
  ];
  return (
    <section
      class={`panel${isMaximised ? " panel-maximised" : ""}${panel.type === "text" ? " panel-of-text" : ""}`}
      aria-label={name}
      ref={element}
      style={{
        "--x": String(x + 1),
        "--y": String(y + 1),
        "--w": String(w),
        "--h": String(h),
        "--order": String(Math.min(y * COLUMNS + x, 2_000_000)),
      }}
    >
      <header class="panel-head">
        {moving !== undefined && <Handle kind="move" name={name} place={panel.grid} moving={moving} />}
        <h2 class="panel-title" title={name}>
          {name}
        </h2>
        {run.isRunning && (
          <span class="panel-running">
            <Spinner />
            <span class="unseen">Running</span>
          </span>
        )}
        {editing !== undefined && (
          <Button look="quiet" label={`Edit ${name}`} icon="query" onClick={editing.onEdit} class="panel-button" />
        )}
        <Button
          look="quiet"
          class="panel-button"
          icon={isMaximised ? "close" : "external"}
          label={isMaximised ? `Back to all panels` : `Show ${name} alone`}
          onClick={props.onMaximise}
        />
        <Menu label={`${name}: more`} items={items} class="panel-button">
          <Icon name="more" size={16} />
        </Menu>
      </header>
      <div class="panel-body">
        <PanelBody
          panel={panel}
          run={run}
          bounds={bounds}
          waiting={waiting}
          problem={problem}
          onRetry={again}
          onRange={props.onRange}
        />
      </div>
      {moving !== undefined && <Handle kind="resize" name={name} place={panel.grid} moving={moving} />}
    </section>
  );
}

type Prepared = { queries: readonly PreparedQuery[]; waiting: string | undefined; problem: string | undefined };

/** The queries with the values of what they name; or what they wait for, or why they cannot run. */
function prepared(panel: Panel, parameters: Parameters): Prepared {
  const nothing = { queries: [], waiting: undefined, problem: undefined };
  const type = knownType(panel.type);
  if (type === undefined || type === "text") return nothing;
  const limit = type === "logs" ? ROWS_OF_LOGS : type === "table" ? ROWS_OF_TABLE : ROWS_OF_CHART;
  const queries: PreparedQuery[] = [];
  for (const query of panel.queries) {
    const binding = bound(query, parameters);
    if (binding.kind === "refused") return { ...nothing, problem: binding.problem };
    if (binding.kind === "waiting") return { ...nothing, waiting: `Waiting for ${binding.for.join(", ")}…` };
    queries.push({ ...query, params: binding.params, limit });
  }
  return { ...nothing, queries };
}
