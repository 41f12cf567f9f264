// The lease of the question that is shown: how long it still lasts, renewed while someone is at the page.
"use strict";

const lease = { ends: 0, renewAt: 0, renewing: false, seconds: 0, active: Date.now() };

/** A page on which nobody has moved anything for so many leases is taken to be abandoned: others may have its question. */
const IDLE_LEASES = 3;

for (const sign of ["pointermove", "pointerdown", "keydown", "wheel", "scroll", "touchmove"]) {
  document.addEventListener(sign, () => { lease.active = Date.now(); }, { capture: true, passive: true });
}

/** The question is ours for so many seconds; in half of them the lease is renewed. */
function hold(seconds) {
  lease.ends = Date.now() + 1000 * seconds;
  lease.renewAt = Date.now() + 500 * seconds;
  lease.seconds = seconds;
  countdown();
}

function countdown() {
  const left = Math.max(0, Math.ceil((lease.ends - Date.now()) / 1000));
  const time = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  $("lease").textContent = left ? `Yours for ${time}` : "No longer kept for you alone";
}

async function renew() {
  const asked = question;
  lease.renewing = true;
  try {
    const told = await call("POST", "/renew", { ticket: asked.id });
    if (question === asked) hold(told.seconds_left);
  } catch (error) {
    lease.renewAt = Date.now() + 3000;
    const lost = error.status === 409 || error.status === 404;
    if (lost && question === asked) act(() => Promise.reject(error));
  } finally {
    lease.renewing = false;
  }
}

function tick() {
  if (!question) return;
  countdown();
  const isAttended = !document.hidden && Date.now() - lease.active < 1000 * IDLE_LEASES * lease.seconds;
  if (isAttended && !busy && !lease.renewing && Date.now() >= lease.renewAt) renew();
}
