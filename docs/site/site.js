// A browser starts no Worker for a page opened from disk. The search's Worker then runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const begin = () => {
        document.body.append(frame);
        const inner = (this.inner = frame.contentWindow);
        inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = () => {
          this.postMessage = (data) => inner.dispatchEvent(new inner.MessageEvent("message", { data }));
          this.waiting.forEach(this.postMessage);
        };
        inner.document.body.append(script);
      };
      document.readyState === "loading" ? addEventListener("DOMContentLoaded", begin) : begin();
    }
    postMessage(data) {
      this.waiting.push(data);
    }
    set onmessage(listener) {
      this.addEventListener("message", listener);
    }
    terminate() {}
  };
}

// A table that is wider than the screen scrolls by keyboard too.
addEventListener("load", () => {
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((each) => (each.tabIndex = 0));
});
