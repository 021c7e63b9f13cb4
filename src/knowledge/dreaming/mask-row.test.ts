import { expect, test } from "vitest";
import { maskRow } from "./mask-row.ts";

const SECRET = "hunter2secret9";
const said = `password="${SECRET}"`;

test.each([
  ["a text with quotes", { message: said }],
  ["JSON in a text", { body: JSON.stringify({ message: said }) }],
  ["JSON in JSON in a text", { body: JSON.stringify({ inner: JSON.stringify([said]) }) }],
  ["a quoted text", { body: JSON.stringify(said) }],
  ["a list", { messages: [{ content: said }] }],
  ["the value of a name", { headers: { api_key: SECRET } }],
  ["a key", { [`https://ann:${SECRET}@host`]: 1 }],
])("masks a secret in %s", (_what, row) => {
  const masked = JSON.stringify(maskRow(row));
  expect(masked).not.toContain(SECRET);
  expect(masked).toContain("[masked");
});

test("leaves the rest as it is", () => {
  const row = {
    at: "2026-01-02T03:04:05Z",
    n: 1.5,
    ok: true,
    none: null,
    text: 'say "hi" [now',
    inner: '{"n": 12345678901234567890}',
  };
  expect(maskRow(row)).toBe(row);
});

test("replaces what is nested deeper than the stack takes", () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  expect(JSON.stringify(maskRow({ deep: JSON.parse(deep), text: deep }))).toContain("nested too deeply");
});
