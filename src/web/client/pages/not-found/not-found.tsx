import type { JSX } from "preact";
import { usePageAddress } from "../../base/schema.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHead } from "../../components/page-head.tsx";

/** An address below `/ui/` that no page has. */
export function NotFoundPage(): JSX.Element {
  const addressOf = usePageAddress();
  return (
    <>
      <PageHead title="Page not found" />
      <EmptyState icon="explore" title="There is no such page">
        <p>
          No page exists at <code>{location.pathname}</code>.
        </p>
        <a class="button button-primary" href={addressOf("")}>
          Go to the overview
        </a>
      </EmptyState>
    </>
  );
}
