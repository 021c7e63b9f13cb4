import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ExactNumber } from "../base/exact-number.ts";
import { formatCount, plural } from "../base/format.ts";
import { Icon } from "./icons.tsx";
import "./json-tree.css";

/** Of an object or a list at once. */
const SHOWN_PARTS = 200;
const OPEN_LEVELS = 2;

/** JSON whose objects and lists open and close. */
export function JsonTree({ value }: { value: unknown }): JSX.Element {
  return (
    <div class="tree">
      <TreePart value={value} keys={[]} openLevels={OPEN_LEVELS} />
    </div>
  );
}

/** The keys that lead to a part; undefined below a list. */
type Keys = readonly string[] | undefined;

type TreePartProps = {
  name?: string;
  value: unknown;
  keys: Keys;
  /** Levels that are open at first. */
  openLevels: number;
  /** Draws what is neither an object nor a list, with its name; by default both as they are in JSON. */
  leaf?: ((name: string, value: unknown, keys: Keys) => JSX.Element) | undefined;
};

/** One value of a tree, with everything below it. */
export function TreePart({ name, value, keys, openLevels, leaf }: TreePartProps): JSX.Element {
  const [isOpen, setOpen] = useState(openLevels > 0);
  const [most, setMost] = useState(SHOWN_PARTS);
  const label = name === undefined ? null : <span class="tree-name">{leaf === undefined ? `${name}: ` : name}</span>;
  if (typeof value !== "object" || value === null || value instanceof ExactNumber) {
    if (leaf !== undefined) return leaf(name ?? "", value, keys);
    return (
      <div class="tree-part">
        {label}
        <Leaf value={value} />
      </div>
    );
  }
  const isList = Array.isArray(value);
  const parts: [string, unknown][] = isList ? value.map((item, i) => [String(i), item]) : Object.entries(value);
  return (
    <div class="tree-part">
      <button type="button" class="tree-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} size={12} />
        {label}
        <span class="tree-count">{isList ? plural(parts.length, "item") : plural(parts.length, "member")}</span>
      </button>
      {isOpen && (
        <div class="tree-parts">
          {parts.slice(0, most).map(([key, part]) => (
            <TreePart
              key={key}
              name={key}
              value={part}
              keys={isList || keys === undefined ? undefined : [...keys, key]}
              openLevels={openLevels - 1}
              leaf={leaf}
            />
          ))}
          {parts.length > most && (
            <button type="button" class="tree-more" onClick={() => setMost(most + 5 * SHOWN_PARTS)}>
              {formatCount(parts.length - most)} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf({ value }: { value: unknown }): JSX.Element {
  if (value instanceof ExactNumber) return <span class="tree-number">{value.text}</span>;
  if (typeof value === "string") return <span class="tree-text">{JSON.stringify(value)}</span>;
  return <span class={typeof value === "number" ? "tree-number" : "tree-word"}>{String(value)}</span>;
}
