import type { JSX } from "preact";
import { usePart } from "../base/lazy-part.ts";
import { useMay } from "../base/session.ts";
import { EmptyState } from "../components/empty-state.tsx";
import { PageHead } from "../components/page-head.tsx";
import { PartFailed } from "../components/part-failed.tsx";
import { Spinner } from "../components/spinner.tsx";
import type { Page } from "../pages/page.ts";

/** A page of the list, once it is loaded, for those whose role it is made for. */
export function PageView({ page }: { page: Page }): JSX.Element {
  const may = useMay(page.needs);
  const { part: Content, hasFailed } = usePart(page.part, may);
  if (!may) {
    return (
      <>
        <PageHead title={page.title} />
        <EmptyState icon="key" title={`This page needs the role ${page.needs ?? ""}`}>
          <p>Ask an administrator of this server for it, or sign in as somebody who has it.</p>
        </EmptyState>
      </>
    );
  }
  if (hasFailed) {
    return (
      <>
        <PageHead title={page.title} />
        <PartFailed />
      </>
    );
  }
  return Content === undefined ? <Spinner label={`Loading ${page.title}…`} /> : <Content />;
}
