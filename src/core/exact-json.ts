/** The value of a JSON text, with integers that a double cannot hold as text. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}

function exact(_key: string, value: unknown, { source }: { source?: string }): unknown {
  const isLost = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLost && source !== undefined && /^-?\d+$/.test(source) ? source : value;
}
