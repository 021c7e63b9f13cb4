import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { announce } from "../../base/announce.ts";
import { newId } from "../../base/clock.ts";
import type { Panel } from "./document.ts";
import type { Moving } from "./handles.tsx";
import { freePlace, placedAt } from "./layout.ts";
import { PanelFrame } from "./panel-frame.tsx";
import type { Parameters } from "./parameters.ts";
import type { Bounds, TimeRange } from "./time-range.ts";
import { useIsTabShown } from "./use-browser.ts";

type ChangePanels = (next: (panels: readonly Panel[]) => readonly Panel[]) => void;

type PanelGridProps = {
  panels: readonly Panel[];
  /** The one that is shown alone. */
  alone: Panel | undefined;
  parameters: Parameters;
  bounds: Bounds;
  turn: number;
  isPaused: boolean;
  isEditing: boolean;
  /** An empty id shows all. */
  onAlone: (id: string) => void;
  onRange: (range: TimeRange) => void;
  onEdit: (panel: Panel) => void;
  onPanels: ChangePanels;
};

/** The panels in their places; while they are edited each has handles. */
export function PanelGrid(props: PanelGridProps): JSX.Element {
  const { panels, alone, parameters, bounds, turn, isPaused, isEditing, onAlone, onRange, onEdit, onPanels } = props;
  const moving = useMoving(panels, onPanels);
  const isTabShown = useIsTabShown();
  return (
    <div class={alone === undefined ? "panels" : "panels panels-one"}>
      {(alone === undefined ? panels : [alone]).map((panel) => (
        <PanelFrame
          key={panel.id}
          panel={panel}
          parameters={parameters}
          bounds={bounds}
          turn={turn}
          isPaused={isPaused || !isTabShown}
          isMaximised={panel === alone}
          moving={isEditing && alone === undefined ? moving(panel.id) : undefined}
          onMaximise={() => onAlone(panel === alone ? "" : panel.id)}
          onRange={(from, to) =>
            onRange({ from: new Date(from * 1_000).toISOString(), to: new Date(to * 1_000).toISOString() })
          }
          editing={
            isEditing
              ? {
                  onEdit: () => onEdit(panel),
                  onCopy: () =>
                    onPanels((all) => [...all, { ...panel, id: newId(), grid: freePlace(all, panel.grid) }]),
                  onDelete: () => {
                    onPanels((all) => all.filter(({ id }) => id !== panel.id));
                    announce("The panel is deleted; Discard brings it back.");
                  },
                }
              : undefined
          }
        />
      ))}
    </div>
  );
}

/** Where panels are while one of them is moved: from where all were at its beginning. */
function useMoving(now: readonly Panel[], setPanels: ChangePanels): (id: string) => Moving {
  const before = useRef<readonly Panel[] | undefined>(undefined);
  return (id) => ({
    begin: () => void (before.current = now),
    show: (place) => setPanels((panels) => placedAt(before.current ?? panels, id, place)),
    end: (isKept) => {
      const start = before.current;
      if (!isKept && start !== undefined) setPanels(() => start);
    },
  });
}
