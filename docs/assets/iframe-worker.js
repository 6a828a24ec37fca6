/* A page that is opened as a file may not start a Worker, which the site's search is. There, and
   only there, a hidden frame takes its place. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((resolve) => {
        const start = () => {
          document.body.appendChild(frame);
          const inside = frame.contentWindow;
          // What the worker sends goes to whoever listens here.
          inside.postMessage = (data) => {
            const event = new MessageEvent("message", { data });
            this.dispatchEvent(event);
            if (this.onmessage) this.onmessage(event);
          };
          inside.importScripts = (...urls) =>
            urls.reduce((before, each) => before.then(() => this.load(inside, each)), Promise.resolve());
          this.load(inside, url).then(() => resolve(inside));
        };
        document.body ? start() : addEventListener("DOMContentLoaded", start);
      });
    }

    load(inside, url) {
      return new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, document.baseURI).href;
        script.onload = resolve;
        script.onerror = reject;
        inside.document.head.appendChild(script);
      });
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {}
  };
}
