import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useCapabilities } from "../../base/capabilities.ts";
import { formatCount } from "../../base/format.ts";
import { storage } from "../../base/storage.ts";
import { ErrorBox } from "../../components/error-box.tsx";
import { Icon } from "../../components/icons.tsx";
import { MarkedText } from "../../components/marked-text.tsx";

const KEPT = "not-set-up";

/** What is off on this server, and what turns it on: open when it is first seen, later as it was left. */
export function NotSetUp(): JSX.Element | null {
  const { data, error, refetch } = useCapabilities();
  const [isOpen, setOpen] = useState(() => storage.get(KEPT) !== "closed");
  const off = data?.filter(({ enabled }) => !enabled) ?? [];
  const isSeen = off.length > 0;
  useEffect(() => {
    if (isSeen && storage.get(KEPT) === undefined) storage.set(KEPT, "closed");
  }, [isSeen]);
  if (error !== null && data === undefined) {
    return <ErrorBox title="What is not set up could not be read." error={error} onRetry={() => void refetch()} />;
  }
  if (!isSeen) return null;
  return (
    <details
      class="card not-set-up"
      open={isOpen}
      onToggle={({ currentTarget: { open } }) => {
        // The browser says it of a first drawing, too.
        if (open === isOpen) return;
        setOpen(open);
        storage.set(KEPT, open ? "open" : "closed");
      }}
    >
      <summary>
        <Icon name="right" size={16} />
        <h2>Not set up</h2> <small>{formatCount(off.length)}</small>
      </summary>
      <dl>
        {off.map(({ name, title, reason }) => (
          <div key={name}>
            <dt>{title}</dt>
            <dd>
              <MarkedText text={reason ?? ""} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
