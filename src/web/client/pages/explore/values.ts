import { ExactNumber } from "../../base/exact-number.ts";

/** A value as one text, as a filter compares it; null for NULL. */
export function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  return jsonOf(value);
}

/** JSON, with the digits of all numbers. */
export function jsonOf(value: unknown): string {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([key, part]) => `${JSON.stringify(key)}:${jsonOf(part)}`)
      .join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}
