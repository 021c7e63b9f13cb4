import type { JSX } from "preact";

/** A sentence of the server, with what it has between backticks as code. */
export function MarkedText({ text }: { text: string }): JSX.Element {
  // Every other part was between two of them; one that has no second is a character as any.
  const parts = text.split(/`([^`]+)`/);
  return <>{parts.map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part))}</>;
}
