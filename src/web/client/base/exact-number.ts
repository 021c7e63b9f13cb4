/** An integer that JavaScript has no number for, as it is written. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON whose numbers, where JavaScript has none for them, stay as they are written. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, exactly) as unknown;
}

function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  const isInexact = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isInexact && context?.source !== undefined ? new ExactNumber(context.source) : value;
}
