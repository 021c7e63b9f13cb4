import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { onNotice, type Notice } from "../base/announce.ts";
import { clock } from "../base/clock.ts";
import { Button } from "../components/button.tsx";

const SHOWN_MS = 6_000;

/** Says what was announced to screen readers, and shows what is to be seen for a moment. */
export function Notices(): JSX.Element {
  const [said, setSaid] = useState<Notice | undefined>();
  const [shown, setShown] = useState<readonly Notice[]>([]);
  const drop = (id: number) => setShown((before) => before.filter((one) => one.id !== id));
  useEffect(
    () =>
      onNotice((notice) => {
        setSaid(notice);
        if (!notice.isShown) return;
        setShown((before) => [...before.slice(-3), notice]);
        // What went wrong stays until it is read.
        if (notice.tone !== "bad") clock.after(SHOWN_MS, () => drop(notice.id));
      }),
    [],
  );
  return (
    <>
      <div class="unseen" aria-live="polite" aria-atomic="true" data-notice={said?.id}>
        {said?.text}
      </div>
      <div class="toasts">
        {shown.map((notice) => (
          <div key={notice.id} class={`toast toast-${notice.tone}`}>
            <p>{notice.text}</p>
            <Button look="quiet" icon="close" label="Dismiss" onClick={() => drop(notice.id)} />
          </div>
        ))}
      </div>
    </>
  );
}
