import type { ComponentChildren, JSX, TargetedMouseEvent } from "preact";
import { useMay, type CallerRole } from "../base/session.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Spinner } from "./spinner.tsx";

export type ButtonProps = {
  children?: ComponentChildren;
  /** `primary` once on a page at most; `quiet` among other things; `danger` for what cannot be undone. */
  look?: "primary" | "plain" | "quiet" | "danger";
  icon?: IconName;
  /** The name of a button that shows an icon only. */
  label?: string;
  /** The least role: without it the button is disabled and says why. */
  needs?: CallerRole;
  isDisabled?: boolean;
  /** Why it is disabled. */
  reason?: string;
  isBusy?: boolean;
  isPressed?: boolean;
  type?: "button" | "submit";
  onClick?: (event: TargetedMouseEvent<HTMLButtonElement>) => void;
  class?: string;
};

/** A disabled button keeps its place in the order of Tab, so that everybody can learn why it is. */
export function Button(props: ButtonProps): JSX.Element {
  const { needs } = props;
  return needs === undefined ? <AnyButton {...props} /> : <ButtonWithRole {...props} needs={needs} />;
}

/** Apart from the others, as each one observes the session: a page may have hundreds of buttons. */
function ButtonWithRole(props: ButtonProps & { needs: CallerRole }): JSX.Element {
  const { needs } = props;
  const may = useMay(needs);
  return <AnyButton {...props} {...(!may && { isDisabled: true, reason: `This needs the role ${needs}.` })} />;
}

function AnyButton(props: ButtonProps): JSX.Element {
  const { children, look = "plain", icon, label, reason, isBusy = false, isPressed, type = "button", onClick } = props;
  const isOff = props.isDisabled === true || isBusy;
  const isBare = children === undefined;
  return (
    <button
      type={type}
      class={`button button-${look}${isBare ? " button-bare" : ""}${props.class === undefined ? "" : ` ${props.class}`}`}
      aria-label={label}
      aria-disabled={isOff ? "true" : undefined}
      aria-description={isOff ? reason : undefined}
      aria-pressed={isPressed}
      aria-busy={isBusy ? "true" : undefined}
      title={isOff ? (reason ?? label) : label}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onClick?.(event);
      }}
    >
      {isBusy ? <Spinner /> : icon !== undefined && <Icon name={icon} />}
      {!isBare && <span>{children}</span>}
    </button>
  );
}
