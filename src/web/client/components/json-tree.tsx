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
      <Part value={value} level={0} />
    </div>
  );
}

type PartProps = { name?: string; value: unknown; level: number };

function Part({ name, value, level }: PartProps): JSX.Element {
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS);
  const [most, setMost] = useState(SHOWN_PARTS);
  const label = name === undefined ? null : <span class="tree-name">{name}: </span>;
  if (typeof value !== "object" || value === null || value instanceof ExactNumber) {
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
            <Part key={key} name={key} value={part} level={level + 1} />
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
