import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ApiError } from "../../base/api-error.ts";
import {
  signInWithPassword,
  signInWithToken,
  startAddress,
  type SignInConfig,
  type SignInWay,
} from "../../base/session.ts";
import { useMutation } from "../../base/use-query.ts";
import { Button } from "../../components/button.tsx";
import { ErrorBox } from "../../components/error-box.tsx";
import { Field } from "../../components/field.tsx";
import { Icon } from "../../components/icons.tsx";
import { Tabs } from "../../components/tabs.tsx";

type SignInFormProps = {
  config: SignInConfig;
  /** Where an issuer leads back to. */
  returnTo: string;
  /** Whether issuers open in a window of their own, so that the page behind stays. */
  isInWindow?: boolean;
  onSignedIn: () => Promise<void>;
};

type Way = "password" | "token";

/** Every way to sign in that the server has: buttons of issuers, a password, a token. */
export function SignInForm({ config, returnTo, isInWindow = false, onSignedIn }: SignInFormProps): JSX.Element {
  const { ways } = config;
  const hasPassword = config.password_login || !config.enabled;
  const [way, setWay] = useState<Way>(hasPassword ? "password" : "token");
  const form = way === "password" ? <PasswordForm onSignedIn={onSignedIn} /> : <TokenForm onSignedIn={onSignedIn} />;
  return (
    <div class="sign-in-form">
      {ways.map((one) => (
        <WayLink key={one.provider} way={one} returnTo={returnTo} isInWindow={isInWindow} />
      ))}
      {ways.length > 0 && <p class="sign-in-or">or</p>}
      {hasPassword ? (
        <Tabs
          label="Ways to sign in"
          tabs={[
            { id: "password", title: "Password" },
            { id: "token", title: "Token" },
          ]}
          selected={way}
          onSelect={setWay}
        >
          {form}
        </Tabs>
      ) : (
        form
      )}
    </div>
  );
}

type WayLinkProps = { way: SignInWay; returnTo: string; isInWindow: boolean };

function WayLink({ way: { provider, title }, returnTo, isInWindow }: WayLinkProps): JSX.Element {
  return (
    <a
      class="button button-plain sign-in-way"
      href={startAddress(provider, returnTo)}
      {...(isInWindow && { target: "_blank", rel: "opener" })}
    >
      <Icon name={isInWindow ? "external" : "key"} />
      <span>Sign in with {title}</span>
    </a>
  );
}

function PasswordForm({ onSignedIn }: { onSignedIn: () => Promise<void> }): JSX.Element {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const signIn = useMutation(async () => {
    await signInWithPassword(username, password);
    await onSignedIn();
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void signIn.run(undefined);
      }}
    >
      <Field
        label="User name"
        name="username"
        value={username}
        onInput={setUsername}
        autocomplete="username"
        isRequired
      />
      <Field
        label="Password"
        name="password"
        type="password"
        value={password}
        onInput={setPassword}
        autocomplete="current-password"
        isRequired
      />
      {signIn.error !== null && <ErrorBox error={refusal(signIn.error, "The user name or the password is wrong.")} />}
      <Button type="submit" look="primary" isBusy={signIn.isPending}>
        Sign in
      </Button>
    </form>
  );
}

function TokenForm({ onSignedIn }: { onSignedIn: () => Promise<void> }): JSX.Element {
  const [token, setToken] = useState("");
  const signIn = useMutation(async () => {
    await signInWithToken(token.trim());
    await onSignedIn();
  });
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void signIn.run(undefined);
      }}
    >
      <Field
        label="Token"
        name="token"
        type="password"
        value={token}
        onInput={setToken}
        autocomplete="off"
        hint="One of the configuration, an API token (engine token create), or one of an issuer."
        isRequired
        isMonospaced
      />
      {signIn.error !== null && <ErrorBox error={refusal(signIn.error, "The token is not valid here.")} />}
      <Button type="submit" look="primary" isBusy={signIn.isPending}>
        Sign in
      </Button>
    </form>
  );
}

/** The server does not say which of the two is wrong, and neither does the page. */
function refusal(error: Error, sentence: string): Error {
  if (!(error instanceof ApiError) || error.status !== 401) return error;
  return new ApiError(error.status, { ...error.details, message: sentence });
}
