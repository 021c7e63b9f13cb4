import { LocationProvider, useLocation } from "preact-iso";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { callerName, onSessionElsewhere, sessionChanged, useSession } from "../base/session.ts";
import { queryClient } from "../base/query-client.ts";
import { ErrorBox } from "../components/error-box.tsx";
import { Spinner } from "../components/spinner.tsx";
import { SignInPage } from "../pages/sign-in/sign-in.tsx";
import { Notices } from "./notices.tsx";
import { Shell } from "./shell.tsx";
import { SignInAgain } from "./sign-in-again.tsx";
import { Unexpected } from "./unexpected.tsx";

const SIGN_IN = "/ui/sign-in";

export function App(): JSX.Element {
  return (
    <LocationProvider scope="/ui/">
      <Unexpected>
        <Gate />
      </Unexpected>
      <SignInAgain />
      <Notices />
    </LocationProvider>
  );
}

/** Shows pages to those who are known, or need not be; all others sign in first. */
function Gate(): JSX.Element {
  const { data: session, error, refetch } = useSession();
  const { path, url, route } = useLocation();
  const isSignIn = path.replace(/\/$/, "") === SIGN_IN;
  const mustSignIn = session !== undefined && session.caller === undefined && !isSignIn;
  useEffect(() => onSessionElsewhere(() => void queryClient.invalidateQueries({ queryKey: ["session"] })), []);
  useEffect(() => {
    if (!mustSignIn) return;
    const here = url + location.hash;
    route(`${SIGN_IN}?${new URLSearchParams({ return_to: here }).toString()}`, true);
  }, [mustSignIn, url, route]);
  if (session === undefined && error !== null) {
    return (
      <main class="alone">
        <h1>engine</h1>
        <ErrorBox title="Could not check who is signed in." error={error} onRetry={() => void refetch()} />
      </main>
    );
  }
  if (session === undefined || mustSignIn) {
    return (
      <main class="alone">
        <Spinner label="Loading…" />
      </main>
    );
  }
  if (isSignIn) return <SignInPage session={session} onSignedIn={sessionChanged} />;
  // Pages hold what is typed: another caller begins with new ones.
  return <Shell key={session.caller && callerName(session.caller)} session={session} />;
}
