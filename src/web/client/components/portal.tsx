import { createPortal } from "preact/compat";
import type { ComponentChildren, JSX } from "preact";

/**
 * Draws what lies above the page at its end, or in the dialog that is open, outside of which nothing can be reached.
 * (`Portal` of `@zag-js/preact` 1.44 asks for React.)
 */
export function Portal({ children }: { children: ComponentChildren }): JSX.Element {
  const place = document.querySelector("dialog:modal") ?? document.body;
  return <>{createPortal(<>{children}</>, place)}</>;
}
