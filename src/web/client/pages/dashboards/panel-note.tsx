import type { JSX } from "preact";
import { formatCount } from "../../base/format.ts";

/** That a drawing leaves something out; nothing where it has all. */
export function Left({ count, what }: { count: number; what: string }): JSX.Element | null {
  if (count === 0) return null;
  return (
    <p class="panel-more">
      {formatCount(count)} more {what} are not drawn.
    </p>
  );
}
