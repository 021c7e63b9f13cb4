import type { JSX } from "preact";

/** Beside a text that says what is waited for, or with one of its own. */
export function Spinner({ label }: { label?: string }): JSX.Element {
  const ring = <span class="spinner" aria-hidden="true" />;
  if (label === undefined) return ring;
  return (
    <p class="waiting" role="status">
      {ring} {label}
    </p>
  );
}

/** How much is done, from 0 to 1; without a value, that something goes on. */
export function Progress({ value, label }: { value?: number | undefined; label: string }): JSX.Element {
  return <progress class="progress" aria-label={label} {...(value !== undefined && { value, max: 1 })} />;
}
