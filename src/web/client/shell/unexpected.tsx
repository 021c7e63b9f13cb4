import type { ComponentChildren, JSX } from "preact";
import { useErrorBoundary } from "preact/hooks";
import { Button } from "../components/button.tsx";
import { ErrorBox } from "../components/error-box.tsx";

/** A page that throws while it is drawn takes nothing else with it. */
export function Unexpected({ children }: { children: ComponentChildren }): JSX.Element {
  const [error, reset] = useErrorBoundary() as [unknown, () => void];
  if (error === undefined) return <>{children}</>;
  return (
    <div class="alone">
      <ErrorBox title="Something went wrong on this page. Please report it." error={error} onRetry={reset} />
      <Button icon="refresh" onClick={() => location.reload()}>
        Reload
      </Button>
    </div>
  );
}
