import type { PendingFlow } from "../oauth/flows.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import { escapeHtml } from "../../server/escape-html.ts";

/**
 * The pages that a browser sees after the provider: the result, and the question before it. What they show came from
 * elsewhere in part, so all of it is escaped, and the policy lets nothing run or load but what has the page's nonce.
 */
export type ResultMessage = {
  type: "engine.oauth";
  status: "done" | "failed" | "expired";
  credential_id: string | null;
  state: string;
};

export type ResultPage = {
  status: 200 | 400;
  title: string;
  text: string;
  /** What the opener is told; undefined where it is not known which flow this is. */
  message: ResultMessage | undefined;
};

/** Tells the opener, if it is of the user interface, and closes; without one the page stays, with a link. */
export function resultPage({ status, title, text, message }: ResultPage, returnBase: string, nonce: string) {
  // The browser delivers it to that origin only, whoever opened the window.
  const origin = new URL(returnBase).origin;
  const script =
    message === undefined
      ? ""
      : `<script nonce="${nonce}">if (window.opener) { window.opener.postMessage(${scriptText(message)}, ` +
        `${scriptText(origin)}); window.close(); }</script>`;
  const body = `<h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p><p><a href="${escapeHtml(returnBase)}">Go back</a></p>${script}`;
  return pageOf({ status, title, body, nonce, formAction: "'none'", referrer: "no-referrer" });
}

/** What the provider sent, as the form hands it on. */
export type AnswerFields = { code: string; state: string; iss: string | undefined };

/** Asks whether the account is to be connected for the one who started the flow, who may be somebody else. */
export function confirmationPage(flow: PendingFlow, fields: AnswerFields, nonce: string): HttpResponse {
  const { providerTitle, label, startedBy } = flow;
  const title = `Connect ${providerTitle}?`;
  const hidden = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`<input type="hidden" name="${name}" value="${escapeHtml(value)}">`],
  );
  const body =
    `<h1>${escapeHtml(title)}</h1><p>This was not started in this browser. If you go on, <b>${escapeHtml(startedBy)}</b> can use ` +
    `the ${escapeHtml(providerTitle)} account that you have just given access to, as the credential ` +
    `<b>${escapeHtml(label)}</b>.</p><p>If you did not start this yourself, or somebody sent you the link, cancel.</p>` +
    `<form method="post">${hidden.join("")}<button name="decision" value="connect">Connect</button> ` +
    `<button name="decision" value="cancel">Cancel</button></form>`;
  // With `no-referrer` the browser would send the form with `Origin: null`; this still tells no other site anything. An
  // edge puts its own policy into the header, and the page's word is the last.
  return pageOf({ status: 200, title, body, nonce, formAction: "'self'", referrer: "same-origin" });
}

type PageParts = {
  status: number;
  title: string;
  /** HTML. */
  body: string;
  nonce: string;
  formAction: "'none'" | "'self'";
  referrer: "no-referrer" | "same-origin";
};

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:4em auto;padding:0 1em;overflow-wrap:anywhere}" +
  "button{font:inherit;padding:.4em 1.2em}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}a{color:#9cf}}";

function pageOf({ status, title, body, nonce, formAction, referrer }: PageParts): HttpResponse {
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    `form-action ${formAction}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    status,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": policy.join("; "),
      "Cache-Control": "no-store",
      "Referrer-Policy": referrer,
      "X-Content-Type-Options": "nosniff",
      "X-Frame-Options": "DENY",
    },
    body: `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="${referrer}"><title>${escapeHtml(title)}</title><style nonce="${nonce}">${STYLE}</style></head>
<body><main>${body}</main></body></html>
`,
  };
}

/** A value as the text of a script: JSON in which nothing can end the element, nor a line of an old parser. */
function scriptText(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
