import type { JSX, TargetedKeyboardEvent, TargetedPointerEvent } from "preact";
import { useRef } from "preact/hooks";
import { announce } from "../../base/announce.ts";
import { bounded, grown, placeAfterKey, placeInWords, samePlace, stepsOf, type Place } from "./layout.ts";

/**
 * How a panel gets another place. `begin` keeps the layout as it is now, `show` shows that layout with the panel at another
 * place, `end` keeps what is shown, or goes back: panels that made room on the way are where they were.
 */
export type Moving = {
  begin: () => void;
  show: (place: Place) => void;
  end: (isKept: boolean) => void;
};

type HandleProps = { name: string; place: Place; moving: Moving; kind: "move" | "resize" };

type Drag = { pointer: number; x: number; y: number; start: Place; last: Place };

/** Drags a panel, or its corner, with the pointer; with the arrow keys while it has the focus. */
export function Handle({ name, place, moving, kind }: HandleProps): JSX.Element {
  const drag = useRef<Drag | undefined>(undefined);
  const keys = useRef<{ start: Place } | undefined>(undefined);

  const onPointerDown = (event: TargetedPointerEvent<HTMLButtonElement>): void => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { pointer: event.pointerId, x: event.pageX, y: event.pageY, start: place, last: place };
    moving.begin();
  };
  const onPointerMove = (event: TargetedPointerEvent<HTMLButtonElement>): void => {
    const { current } = drag;
    const grid = event.currentTarget.closest(".panels");
    if (current?.pointer !== event.pointerId || grid === null) return;
    const { columns, rows } = stepsOf(event.pageX - current.x, event.pageY - current.y, grid.clientWidth);
    const { start } = current;
    const next =
      kind === "move" ? bounded({ ...start, x: start.x + columns, y: start.y + rows }) : grown(start, columns, rows);
    if (samePlace(next, current.last)) return;
    current.last = next;
    moving.show(next);
  };
  const endDrag = (isKept: boolean): void => {
    if (drag.current === undefined) return;
    const { last, start } = drag.current;
    drag.current = undefined;
    moving.end(isKept);
    if (isKept && !samePlace(last, start)) announce(`${name}: ${placeInWords(last)}`);
  };
  const endKeys = (isKept: boolean): void => {
    if (keys.current === undefined) return;
    keys.current = undefined;
    moving.end(isKept);
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLButtonElement>): void => {
    if (event.key === "Escape" && (keys.current !== undefined || drag.current !== undefined)) {
      event.preventDefault();
      const start = keys.current?.start ?? drag.current?.start ?? place;
      endDrag(false);
      endKeys(false);
      announce(`${name} is where it was: ${placeInWords(start)}`);
      return;
    }
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const next = placeAfterKey(place, event.key, event.shiftKey || kind === "resize");
    if (next === undefined) return;
    event.preventDefault();
    if (keys.current === undefined) {
      keys.current = { start: place };
      moving.begin();
    }
    if (samePlace(next, place)) {
      announce(`${name} cannot go further`);
      return;
    }
    moving.show(next);
    announce(`${name}: ${placeInWords(next)}`);
  };
  return (
    <button
      type="button"
      class={kind === "move" ? "panel-handle" : "panel-corner"}
      aria-label={kind === "move" ? `Move ${name}` : `Resize ${name}`}
      aria-description={
        kind === "move"
          ? "Arrow keys move the panel, with Shift they change its size, Escape puts it back."
          : "Arrow keys change the size of the panel, Escape puts it back."
      }
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={() => endDrag(true)}
      onPointerCancel={() => endDrag(false)}
      onLostPointerCapture={() => endDrag(true)}
      onKeyDown={onKeyDown}
      onBlur={() => endKeys(true)}
    >
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
        <path
          d={kind === "move" ? "M5 3.5h.1M5 8h.1M5 12.5h.1M11 3.5h.1M11 8h.1M11 12.5h.1" : "M13 5 5 13M13 10l-3 3"}
        />
      </svg>
    </button>
  );
}
