import { useLocation } from "preact-iso";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { sessionChanged, type Session } from "../../base/session.ts";
import { ErrorBox } from "../../components/error-box.tsx";
import { ICON } from "../../components/icon-address.ts";
import { SignInForm } from "./sign-in-form.tsx";
import { signInProblem } from "./problems.ts";
import "./sign-in.css";

type SignInProps = { session: Session; onSignedIn: () => Promise<void> };

/** `/ui/sign-in?return_to=…`: what an issuer or a lost session leads to. With `then=close` it is a window of its own. */
export function SignInPage({ session: { config, caller }, onSignedIn }: SignInProps): JSX.Element {
  const { query, route } = useLocation();
  const { error, then } = query;
  const returnTo = ownAddress(query["return_to"]);
  const isWindow = then === "close";
  const isKnown = config.enabled && caller !== undefined;
  useEffect(() => {
    document.title = "Sign in · engine";
  }, []);
  useEffect(() => {
    if (!isKnown || error !== undefined) return;
    if (!isWindow) route(returnTo, true);
    else void sessionChanged().then(() => window.close());
  }, [isKnown, error, isWindow, returnTo, route]);
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <img src={ICON} alt="" width={40} height={40} />
        <h1>Sign in to engine</h1>
        {error !== undefined && <ErrorBox error={signInProblem(error)} />}
        {isKnown ? (
          <p>
            You are signed in as <strong>{caller.subject}</strong>. <a href={returnTo}>Go on</a>
          </p>
        ) : (
          <SignInForm
            config={config}
            returnTo={returnTo}
            onSignedIn={async () => {
              await onSignedIn();
              route(returnTo, true);
            }}
          />
        )}
        {!config.enabled && (
          <p class="sign-in-note">
            Authentication is off here, so nothing asks who you are. <a href={returnTo}>Go on without signing in</a>
          </p>
        )}
      </div>
    </main>
  );
}

/** Nobody else's page is led to, and not this one again. */
function ownAddress(address: string | undefined): string {
  const url = URL.parse(address ?? "", location.origin);
  const isOwn = url?.origin === location.origin && url.pathname.startsWith("/ui/");
  if (!isOwn || url.pathname.startsWith("/ui/sign-in")) return "/ui/";
  return url.pathname + url.search + url.hash;
}
