import type { KqlCase, KqlValue } from "./cases.test-kit.ts";

/** The case that `print x = EXPRESSION` answers one row with this value, and its KQL type where it matters. */
export function prints(expression: string, x: KqlValue, type?: string): KqlCase {
  const answered = { query: `print x = ${expression}`, rows: [{ x }] };
  return type === undefined ? answered : { ...answered, types: { x: type } };
}

/** The case that `print x = EXPRESSION` is refused as an invalid query, with a message that has this part. */
export function refuses(expression: string, message: string): KqlCase {
  return { query: `print x = ${expression}`, refused: { code: "invalid_query", message } };
}
