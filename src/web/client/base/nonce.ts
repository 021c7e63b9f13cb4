/** The nonce of this page, for styles that a library makes while it runs. Browsers show it to scripts as a property only. */
export function styleNonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
}
