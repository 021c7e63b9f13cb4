import { cutWithin } from "../../core/cut-text.ts";
import { GRAPH_LIMITS } from "./limits.ts";

/** A value as parts of graphs show it: long texts are cut off, and what is nested is its JSON text where that is long. */
export function brief(value: unknown): unknown {
  if (typeof value === "string") return cutOff(value);
  if (typeof value !== "object" || value === null) return value;
  const text = JSON.stringify(value);
  return text.length <= GRAPH_LIMITS.briefChars ? value : cutOff(text);
}

function cutOff(text: string): string {
  return cutWithin(text, GRAPH_LIMITS.briefChars);
}
