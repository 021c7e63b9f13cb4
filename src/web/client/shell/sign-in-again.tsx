import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../base/api-error.ts";
import { onSessionEnded } from "../base/api.ts";
import { onSessionElsewhere, readSession, sessionChanged, useSession } from "../base/session.ts";
import { Dialog } from "../components/dialog.tsx";
import { SignInForm } from "../pages/sign-in/sign-in-form.tsx";

type Waiting = { go: () => void; stop: (error: Error) => void };

/**
 * The session has ended while a page is open: one signs in over it, and what was asked is asked again, so that nothing typed
 * is lost. Several requests wait for one dialog.
 */
export function SignInAgain(): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  const waiting = useRef<Waiting[]>([]);
  const { data: session } = useSession();
  useEffect(() => {
    onSessionEnded(
      (signal) =>
        new Promise<void>((resolve, reject) => {
          const stop = () => reject(signal?.reason as Error);
          if (signal?.aborted === true) {
            stop();
            return;
          }
          const one: Waiting = { go: resolve, stop: reject };
          waiting.current.push(one);
          signal?.addEventListener(
            "abort",
            () => {
              stop();
              waiting.current = waiting.current.filter((other) => other !== one);
              if (waiting.current.length === 0) setOpen(false);
            },
            { once: true },
          );
          setOpen(true);
        }),
    );
    return () => onSessionEnded(undefined);
  }, []);
  const finish = (act: (one: Waiting) => void) => {
    setOpen(false);
    for (const one of waiting.current.splice(0)) act(one);
  };
  useEffect(() => {
    if (!isOpen) return;
    // Signed in with another tab, or in the window of an issuer.
    return onSessionElsewhere(() => {
      void readSession().then(({ caller }) => {
        if (caller !== undefined) finish(({ go }) => go());
      });
    });
  }, [isOpen]);
  if (!isOpen || session === undefined) return null;
  return (
    <Dialog title="Sign in again" onClose={() => finish(({ stop }) => stop(notSignedIn()))}>
      <p>Your session has ended. Sign in to go on where you are.</p>
      <SignInForm
        config={session.config}
        returnTo="/ui/sign-in?then=close"
        isInWindow
        onSignedIn={async () => {
          await sessionChanged();
          finish(({ go }) => go());
        }}
      />
    </Dialog>
  );
}

function notSignedIn(): ApiError {
  return new ApiError(401, { code: "unauthorized", message: "your session has ended: sign in to go on" });
}
