/** What the server says of a sign-in with an issuer that failed (`/ui/sign-in?error=…`). */
const PROBLEMS: Readonly<Record<string, string>> = {
  access_denied: "You have not allowed the sign-in, or the identity provider does not let you in.",
  forbidden: "You are known to the identity provider, and have no role on this server. Ask its administrator.",
  invalid_return_to: "The address to go to afterwards is not one of this server.",
  invalid_token: "The identity provider sent a token that this server does not accept.",
  provider_refused: "The identity provider refused the sign-in.",
  provider_unreachable: "The identity provider cannot be reached at the moment. Try again.",
  state_mismatch: "The sign-in was begun in another browser, or too long ago. Begin again.",
  too_many_requests: "There were too many attempts. Wait a moment, then try again.",
  unavailable: "The server cannot sign anyone in at the moment. Try again.",
  unknown_provider: "This server has no such identity provider.",
};

export function signInProblem(error: string): Error {
  // What an address says is not ours: only what is known is shown.
  return new Error((Object.hasOwn(PROBLEMS, error) ? PROBLEMS[error] : undefined) ?? "Signing in failed. Try again.");
}
