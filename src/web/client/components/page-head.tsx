import type { ComponentChildren, JSX } from "preact";

/** The title of a page, with what can be done there. */
export function PageHead(props: {
  title: string;
  lead?: ComponentChildren;
  children?: ComponentChildren;
}): JSX.Element {
  const { title, lead, children } = props;
  return (
    <div class="page-head">
      <div>
        <h1>{title}</h1>
        {lead !== undefined && <p class="lead">{lead}</p>}
      </div>
      {children !== undefined && <div class="page-actions">{children}</div>}
    </div>
  );
}
