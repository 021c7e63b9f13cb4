import type { JSX } from "preact";
import { Button } from "./button.tsx";
import { EmptyState } from "./empty-state.tsx";

/** A part of the pages did not load: mostly a new release under an open page, whose parts have other names. */
export function PartFailed(): JSX.Element {
  return (
    <EmptyState icon="refresh" title="This part could not be loaded">
      <p>The server may have been updated since this page was opened. Reloading keeps what the address shows.</p>
      <Button look="primary" icon="refresh" onClick={() => location.reload()}>
        Reload
      </Button>
    </EmptyState>
  );
}
