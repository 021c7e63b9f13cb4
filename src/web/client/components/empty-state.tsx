import type { ComponentChildren, JSX } from "preact";
import { Icon, type IconName } from "./icons.tsx";

/** Where there is nothing yet: why, and the next step. */
export function EmptyState(props: { icon?: IconName; title: string; children: ComponentChildren }): JSX.Element {
  const { icon = "info", title, children } = props;
  return (
    <section class="empty">
      <span class="empty-icon">
        <Icon name={icon} size={26} />
      </span>
      <h2>{title}</h2>
      <div class="empty-body">{children}</div>
    </section>
  );
}
